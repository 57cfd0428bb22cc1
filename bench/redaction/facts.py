"""What services say of their credentials: prefix, alphabet, length. A row is a fact, written down from what is public;
samples are drawn from it at run time, so that no credential is in this file.

`{A36}` draws 36 of an alphabet: A letters and digits, a small letters and digits, u capitals and digits, h hex, H hex
in capitals, d digits, b base64, s URL-safe, c capitals, z small letters; `{U}` draws a UUID.
"""

from __future__ import annotations

import base64
import hashlib
import re
import string
from dataclasses import dataclass
from random import Random

_ALPHABETS = {
    "A": string.ascii_letters + string.digits, "a": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits, "h": string.digits + "abcdef", "H": string.digits + "ABCDEF",
    "d": string.digits, "b": string.ascii_letters + string.digits + "+/",
    "s": string.ascii_letters + string.digits + "_-", "c": string.ascii_uppercase, "z": string.ascii_lowercase,
}  # fmt: skip
_DRAWN = re.compile(r"\{([A-Za-z])(\d*)\}")
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


@dataclass(frozen=True, slots=True)
class Fact:
    """`name` is what a setting that holds one is called; with `told` its form alone tells it."""

    service: str
    template: str
    name: str
    told: bool

    def sample(self, rng: Random) -> str:
        if self.template in _SPECIAL:
            return _SPECIAL[self.template](rng)
        return _DRAWN.sub(lambda match: _drawn(rng, match[1], int(match[2] or 0)), self.template)


def _drawn(rng: Random, alphabet: str, count: int) -> str:
    if alphabet == "U":
        return "-".join("".join(rng.choices(_ALPHABETS["h"], k=n)) for n in (8, 4, 4, 4, 12))
    return "".join(rng.choices(_ALPHABETS[alphabet], k=count))


def base58_key(version: bytes, payload: bytes) -> str:
    """Base58Check: the payload with four bytes of its double digest, as a number to the base 58."""
    body = version + payload
    raw = body + hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4]
    number, digits = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        digits = BASE58[digit] + digits
    return digits


def bech32(prefix: str, payload: bytes) -> str:
    """BIP 173, for a payload of whole bytes."""
    bits = "".join(f"{byte:08b}" for byte in payload)
    data = [int(bits[i : i + 5].ljust(5, "0"), 2) for i in range(0, len(bits), 5)]
    spread = [*(ord(c) >> 5 for c in prefix), 0, *(ord(c) & 31 for c in prefix)]
    check = _polymod([*spread, *data, 0, 0, 0, 0, 0, 0]) ^ 1
    return prefix + "1" + "".join(BECH32[d] for d in [*data, *(check >> 5 * (5 - i) & 31 for i in range(6))])


def _polymod(values: list[int]) -> int:
    generators = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    checked = 1
    for value in values:
        top = checked >> 25
        checked = (checked & 0x1FFFFFF) << 5 ^ value
        for i, generator in enumerate(generators):
            checked ^= generator if top >> i & 1 else 0
    return checked


def _pem(rng: Random) -> str:
    kind = rng.choice(["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED "])
    text = f"-----BEGIN {kind}PRIVATE KEY-----\n{_drawn(rng, 'b', 200)}\n-----END {kind}PRIVATE KEY-----\n"
    return base64.b64encode(text.encode()).decode()


def _jwt(rng: Random) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(f'{{"sub":"{_drawn(rng, "a", 12)}"}}'.encode()).decode().rstrip("=")
    return f"{head}.{body}.{_drawn(rng, 's', 43)}"


_SPECIAL = {
    "(wif)": lambda rng: base58_key(b"\x80", rng.randbytes(32)),
    "(wif compressed)": lambda rng: base58_key(b"\x80", rng.randbytes(32) + b"\x01"),
    "(xprv)": lambda rng: base58_key(bytes.fromhex("0488ade4"), rng.randbytes(41) + b"\0" + rng.randbytes(32)),
    "(nsec)": lambda rng: bech32("nsec", rng.randbytes(32)),
    "(pem in base64)": _pem,
    "(jwt)": _jwt,
}

#: Told by its form: service, template; parts of prefixes are joined here so that no scanner takes them for more.
_TOLD = """
AWS access key|A KIA{u16}
AWS temporary key|A SIA{u16}
AWS Bedrock|A BSK{b110}
Alibaba Cloud|L TAI5t{A20}
Tencent Cloud|A KID{A32}
Google API|A Iza{s35}
Google OAuth|y a29.{s80}
Google client|G OCSPX-{s28}
Azure client|{A3}8Q~{A34}
DigitalOcean personal|d op_v1_{h64}
DigitalOcean OAuth|d oo_v1_{h64}
Cloudflare origin CA|v 1.0-{h24}-{h146}
Heroku|H RKU-{s60}
HashiCorp Vault|h vs.{s95}
Terraform Cloud|{A14}.at lasv1.{A67}
Doppler|d p.pt.{A43}
Databricks|d api{h32}
PlanetScale|p scale_tkn_{s43}
Supabase|s bp_{h40}
Supabase secret|s b_secret_{s31}
Netlify|n fp_{A40}
Vercel|v cp_{A24}
Fly.io|f o1_{s43}
Render|r nd_{A32}
Pulumi|p ul-{h40}
Scaleway|S CW{u17}
Tailscale auth|t skey-auth-{A17}CNTRL-{A32}
Tailscale API|t skey-api-{A17}CNTRL-{A32}
OpenShift|s ha256~{s43}
Octopus Deploy|A PI-{u30}
CircleCI personal|C CIPAT_{A22}_{h40}
CircleCI project|C CIPRJ_{A22}_{h40}
Buildkite|b kua_{h40}
SonarQube user|s qu_{h40}
SonarQube project|s qp_{h40}
SonarQube global|s qa_{h40}
Sourcegraph|s gp_{h16}_{h40}
Sourcegraph legacy|s gp_{h40}
Harness|p at.{A22}.{h24}.{A20}
JFrog reference|c mVmdGtu{A56}
Packagist|p ackagist_ack_{h68}
Infisical|s t.{h24}.{h32}.{h32}
Neon|n api_{a64}
Xata|x au_{A38}
Deno Deploy|d dp_{A36}
Scalingo|t k-us-{s48}
Akamai|a kab-{a16}-{a16}
Defined Networking|d nkey-{a26}-{a52}
Prefect|p nu_{a36}
Inngest|s ignkey-prod-{h64}
Trigger.dev|t r_prod_{A20}
Apify|a pify_api_{A36}
Browserbase|b b_live_{A27}
Firecrawl|f c-{h32}
E2B|e 2b_{h40}
Anyscale|e secret_{a32}
OpenAI project|s k-proj-{A48}
OpenAI service account|s k-svcacct-{A48}
OpenAI legacy|s k-{A20}T3BlbkFJ{A20}
Anthropic|s k-ant-api03-{s93}AA
OpenRouter|s k-or-v1-{h64}
DeepSeek|s k-{h32}
Hugging Face|h f_{A34}
Groq|g sk_{A52}
Replicate|r 8_{A37}
Perplexity|p plx-{A48}
xAI|x ai-{A80}
NVIDIA|n vapi-{s64}
Cerebras|c sk-{a48}
Fireworks|f w_{A24}
Together|t gp_v1_{s43}
Voyage|p a-{s43}
Jina|j ina_{A32}{s28}
Pinecone|p csk_{A50}
LangSmith|l sv2_pt_{h32}_{h10}
Langfuse|s k-lf-{U}
Tavily|t vly-{A32}
ElevenLabs|s k_{h48}
Weights & Biases|w andb_v1_{A60}
GitHub personal|g hp_{A36}
GitHub OAuth|g ho_{A36}
GitHub app|g hs_{A36}
GitHub refresh|g hr_{A36}
GitHub fine-grained|g ithub_pat_{A22}_{A59}
GitLab personal|g lpat-{s20}
GitLab deploy|g ldt-{s20}
GitLab runner|g lrt-{s20}
GitLab pipeline|g lptt-{h40}
Bitbucket|A TBB{A32}
Atlassian|A TATT3{s180}
Slack bot|x oxb-{d12}-{d12}-{A24}
Slack user|x oxp-{d12}-{d12}-{d12}-{h32}
Slack app|x app-1-A{u10}-{d12}-{h64}
Discord bot|M TA{A21}.{A6}.{A38}
Telegram|{d10}:AA{s33}
Notion|n tn_{A46}
Linear|l in_api_{A40}
Figma|f igd_{s40}
Airtable|p at{A14}.{h64}
Postman|P MAK-{h24}-{h34}
Asana|1 /{d16}:{h32}
Contentful|C FPAT-{s43}
HubSpot|p at-na1-{U}
Typeform|t fp_{A44}_{A14}
ReadMe|r dme_{a70}
Trello|A TTA{h72}
ClickUp|p k_{d8}_{u32}
Intercom|d G9rO{b55}=
Salesforce|0 0D{A12}!{A96}
Instagram|I GQV{A140}
Pinterest|p ina_{u40}
Twitter app|A AAAAAAAAAAAAAAAAAAAAA{A90}
npm|n pm_{A36}
PyPI|p ypi-AgEIcHlwaS5vcmc{s70}
RubyGems|r ubygems_{h48}
crates.io|c io{A32}
NuGet|o y2{a43}
Docker Hub|d ckr_pat_{s27}
Clojars|C LOJARS_{a60}
Artifactory|A KCp{A69}
Stripe live|s k_live_{A24}
Stripe restricted|r k_live_{A24}
Stripe webhook|w hsec_{A32}
Square|s q0atp-{s22}
Square access|E AAA{s60}
Facebook|E AA{A120}
Razorpay|r zp_live_{A14}
Shopify|s hpat_{h32}
Shopify app|s hpss_{h32}
Flutterwave|F LWSECK-{h32}-X
Plaid|a ccess-sandbox-{U}
Paddle|p dl_live_apikey_{a26}_{A22}_{A3}
Polar|p olar_oat_{A43}
Lob|l ive_{h35}
Mollie|l ive_{A30}
GoCardless|l ive_{A40}
EasyPost|E ZAK{A54}
Shippo|s hippo_live_{h40}
Duffel|d uffel_live_{s43}
WooCommerce key|c k_{h40}
WooCommerce secret|c s_{h40}
SendGrid|S G.{s22}.{s43}
Mailgun|k ey-{h32}
Mailchimp|{h32}-u s12
Mailersend|m lsn.{h64}
Klaviyo|p k_{h34}
Twilio|S K{h32}
Brevo|x keysib-{h64}-{A16}
Resend|r e_{A8}_{A24}
PubNub|s ec-c-{A48}
Sentry organisation|s ntrys_{A120}
Sentry user|s ntryu_{h64}
New Relic|N RAK-{u27}
Grafana service|g lsa_{A32}_{h8}
Grafana Cloud|g lc_{A80}
Dynatrace|d t0c01.{u24}.{u64}
PostHog|p hx_{A43}
LaunchDarkly|s dk-{U}
Statsig|s ecret-{A43}
Stytch|s ecret-live-{A36}
Honeycomb|h caik_{a58}
Axiom|x aat-{U}
Checkly|c u_{h32}
Infracost|i co-{A32}
Frame.io|f io-u-{s64}
Adafruit IO|a io_{A28}
MaxMind|{A6}_{A29}_m mk
SettleMint|s m_pat_{A16}
Intra 42|s -s4t2ud-{h64}
1Password|o ps_eyJ{A200}
Mapbox|s k.eyJ{A60}.{s22}
age|A GE-SECRET-KEY-1{u58}
k3s|K 10{h64}::server:{h32}
Bitcoin|(wif)
Bitcoin compressed|(wif compressed)
Bitcoin extended|(xprv)
Nostr|(nsec)
Kubernetes key data|(pem in base64)
JSON web token|(jwt)
"""

#: Without a form of their own: told by the name of the setting. Service, name, template.
_NAMED = """
Datadog|DD_API_KEY|{h32}
Datadog application|DD_APP_KEY|{h40}
Algolia|ALGOLIA_API_KEY|{h32}
Okta|OKTA_API_TOKEN|00{s40}
Auth0|AUTH0_CLIENT_SECRET|{s64}
Cloudflare|CLOUDFLARE_API_TOKEN|{s40}
Linode|LINODE_TOKEN|{h64}
Vultr|VULTR_API_KEY|{u36}
Hetzner|HCLOUD_TOKEN|{A64}
Fastly|FASTLY_API_TOKEN|{s32}
Bunny|BUNNY_ACCESS_KEY|{h32}
Cohere|COHERE_API_KEY|{A40}
Mistral|MISTRAL_API_KEY|{A32}
AssemblyAI|ASSEMBLYAI_API_KEY|{h32}
Deepgram|DEEPGRAM_API_KEY|{h40}
Snyk|SNYK_TOKEN|{h32}
Codecov|CODECOV_TOKEN|{h32}
Travis CI|TRAVIS_API_TOKEN|{A22}
PagerDuty|PAGERDUTY_API_KEY|{s20}
Rollbar|ROLLBAR_ACCESS_TOKEN|{h32}
Bugsnag|BUGSNAG_API_KEY|{h32}
Amplitude|AMPLITUDE_SECRET_KEY|{h32}
Mixpanel|MIXPANEL_API_SECRET|{h32}
Segment|SEGMENT_ACCESS_TOKEN|{A43}
Spotify|SPOTIFY_CLIENT_SECRET|{h32}
Twitch|TWITCH_CLIENT_SECRET|{a30}
Zoom|ZOOM_CLIENT_SECRET|{A32}
Zendesk|ZENDESK_API_TOKEN|{A40}
Freshdesk|FRESHDESK_API_KEY|{A20}
Pipedrive|PIPEDRIVE_API_TOKEN|{h40}
Todoist|TODOIST_API_TOKEN|{h40}
Binance|BINANCE_SECRET_KEY|{A64}
Kraken|KRAKEN_API_SECRET|{b86}==
Alchemy|ALCHEMY_API_KEY|{s32}
Infura|INFURA_API_SECRET|{h32}
Etherscan|ETHERSCAN_API_KEY|{u34}
OpenWeather|OPENWEATHER_API_KEY|{h32}
Vonage|VONAGE_API_SECRET|{A16}
MessageBird|MESSAGEBIRD_ACCESS_KEY|{A25}
SparkPost|SPARKPOST_API_KEY|{h40}
Unsplash|UNSPLASH_ACCESS_KEY|{s43}
Yelp|YELP_API_KEY|{s128}
Dropbox|DROPBOX_APP_SECRET|{a15}7
Box|BOX_CLIENT_SECRET|{A32}
Bitly|BITLY_ACCESS_TOKEN|{h40}
"""


def facts() -> list[Fact]:
    told = [row.split("|") for row in _TOLD.split("\n") if row]
    named = [row.split("|") for row in _NAMED.split("\n") if row]
    return [
        *(
            Fact(service, form if form in _SPECIAL else form.replace(" ", ""), "SERVICE_VALUE", True)
            for service, form in told
        ),
        *(Fact(service, form, name, False) for service, name, form in named),
    ]
