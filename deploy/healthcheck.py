"""Whether the server in this container is ready: exit 0, else 1 and a line that says why."""

import os
import ssl
import sys
import urllib.error
import urllib.request

TLS = os.environ.get("COMMONPLACE_TLS_CERT")
URL = f"http{'s' if TLS else ''}://127.0.0.1:{os.environ.get('COMMONPLACE_PORT', '8420')}/readyz"


def main() -> int:
    # The certificate is for the name that others know; whoever answers on this port of our own loopback is us.
    context = ssl._create_unverified_context() if TLS else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(URL, timeout=4):
            return 0
    except urllib.error.HTTPError as error:
        print(f"not ready: {error.read(500).decode('utf-8', 'replace')}", file=sys.stderr)
    except OSError as error:
        print(f"nobody answers at {URL}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
