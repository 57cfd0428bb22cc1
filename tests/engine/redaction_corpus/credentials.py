"""One credential of each family, made from the form its provider documents; prefixes are put together here, so that no
scanner finds a credential in this file."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable
from random import Random

UPPER, LOWER, DIGITS = string.ascii_uppercase, string.ascii_lowercase, string.digits
ALNUM = UPPER + LOWER + DIGITS
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
HEX = DIGITS + "abcdef"
BASE32 = UPPER + "234567"

Maker = Callable[[Random], str]


def some(rng: Random, alphabet: str, count: int, most: int = 0) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(count, most or count)))


def p(*parts: str) -> str:
    return "".join(parts)


def uuid(rng: Random) -> str:
    return "-".join(some(rng, HEX, n) for n in (8, 4, 4, 4, 12))


def shaped(prefix: str, alphabet: str, count: int, most: int = 0, suffix: str = "") -> Maker:
    return lambda rng: prefix + some(rng, alphabet, count, most) + suffix


WORDS = (
    "orbit", "winter", "velvet", "tiger", "sunset", "rocket", "puzzle", "ocean", "maple", "ladder", "kettle", "island",
    "hammer", "garden", "falcon", "engine", "dragon", "copper", "bridge", "anchor", "yellow", "violin", "tunnel",
    "spider", "silver", "ribbon", "pepper", "nephew", "mirror", "marble", "magnet", "lizard", "lemon", "jungle",
    "jacket", "insect", "hockey", "guitar", "forest", "flower", "dolphin", "cotton", "coffee", "cherry", "castle",
    "candle", "butter", "bottle", "blanket", "basket", "banana", "autumn", "artist", "apple", "almond", "acorn",
    "zebra", "wagon", "turtle",
)  # fmt: skip


def words(count: int, joint: str = " ") -> Maker:
    return lambda rng: joint.join(rng.sample(WORDS, count))


def _numbered(rng: Random) -> str:
    return "\n".join(f"{i}. {word}" for i, word in enumerate(rng.sample(WORDS, 12), start=1))


def _login(rng: Random) -> str:
    return base64.b64encode(f"{rng.choice(WORDS)}:{some(rng, ALNUM, 8, 20)}".encode()).decode()


def _jwt(rng: Random) -> str:
    def part(document: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    head = part({"alg": "HS256", "typ": "JWT"})
    body = part({"sub": some(rng, DIGITS, 10), "name": "Alice", "iat": rng.randint(10**9, 2 * 10**9)})
    return f"{head}.{body}.{some(rng, URLSAFE, 43)}"


def _discord(rng: Random) -> str:
    first = base64.urlsafe_b64encode(some(rng, "123456789", 18).encode()).decode().rstrip("=")
    return f"{first}.{some(rng, URLSAFE, 6)}.{some(rng, URLSAFE, 27, 38)}"


def pem(rng: Random, kind: str = "RSA ", lines: int = 8, newline: str = "\n") -> str:
    body = newline.join(some(rng, BASE64, 64) for _ in range(lines))
    edge = "-" * 5
    return f"{edge}BEGIN {kind}PRIVATE KEY{edge}{newline}{body}{newline}{edge}END {kind}PRIVATE KEY{edge}"


def _pgp(rng: Random) -> str:
    body = "\n".join(some(rng, BASE64, 64) for _ in range(12))
    edge = "-" * 5
    return (
        f"{edge}BEGIN PGP PRIVATE KEY BLOCK{edge}\nVersion: GnuPG v2\n\n{body}\n={some(rng, BASE64, 4)}\n"
        f"{edge}END PGP PRIVATE KEY BLOCK{edge}"
    )


def card(rng: Random, prefix: str = "4", length: int = 16, joint: str = " ") -> str:
    digits = prefix + some(rng, DIGITS, length - len(prefix) - 1)
    total = 0
    for i, digit in enumerate(reversed(digits)):
        n = int(digit) * (2 if i % 2 == 0 else 1)
        total += n - 9 if n > 9 else n
    digits += str(-total % 10)
    if length == 15:
        return joint.join((digits[:4], digits[4:10], digits[10:]))
    return joint.join(digits[i : i + 4] for i in range(0, length, 4))


#: Families whose credential can be told by its own form, wherever it stands.
BY_FORM: dict[str, Maker] = {
    "aws_access_key": lambda r: r.choice(["AKI", "ASI"]) + "A" + some(r, BASE32, 16),
    "aws_mws": lambda r: p("amzn.", "mws.") + uuid(r),
    "gcp_api_key": shaped(p("AI", "za"), URLSAFE, 35),
    "gcp_oauth_token": shaped(p("ya", "29."), URLSAFE, 60, 120),
    "gcp_client_secret": shaped(p("GOC", "SPX-"), URLSAFE, 28),
    "azure_client_secret": lambda r: f"{some(r, ALNUM, 3)}8Q~{some(r, URLSAFE + '.', 33)}{some(r, ALNUM, 1)}",
    "digitalocean": lambda r: p("do", r.choice("opr"), "_v1_") + some(r, HEX, 64),
    "alibaba": shaped(p("LT", "AI5t"), ALNUM, 20),
    "tencent": shaped(p("AK", "ID"), ALNUM, 32),
    "cloudflare_origin_ca": lambda r: p("v1", ".0-") + some(r, HEX, 24) + "-" + some(r, HEX, 146),
    "heroku": lambda r: p("HR", "KU-") + some(r, URLSAFE, 60),
    "vault": shaped(p("hv", "s."), URLSAFE, 90, 110),
    "terraform_cloud": lambda r: some(r, ALNUM, 14) + p(".atlas", "v1.") + some(r, URLSAFE, 67),
    "doppler": shaped(p("dp", ".pt."), ALNUM, 43),
    "databricks": shaped(p("da", "pi"), HEX, 32),
    "planetscale": shaped(p("pscale", "_tkn_"), URLSAFE, 43),
    "supabase": shaped(p("sb", "p_"), HEX, 40),
    "netlify": shaped(p("nf", "p_"), ALNUM, 36),
    "pulumi": shaped(p("pu", "l-"), HEX, 40),
    "openai_old": lambda r: p("s", "k-") + some(r, ALNUM, 20) + p("T3Blbk", "FJ") + some(r, ALNUM, 20),
    "openai_project": lambda r: p("s", "k-", "proj-") + some(r, URLSAFE, 74) + p("T3Blbk", "FJ") + some(r, URLSAFE, 74),
    "openai_service": shaped(p("s", "k-", "svcacct-"), URLSAFE, 120),
    "anthropic": lambda r: p("s", "k-", "ant-api03-") + some(r, URLSAFE, 93) + "AA",
    "openrouter": shaped(p("s", "k-", "or-v1-"), HEX, 64),
    "deepseek": shaped(p("s", "k-"), HEX, 32),
    "huggingface": shaped(p("h", "f_"), UPPER + LOWER, 34),
    "groq": shaped(p("gs", "k_"), ALNUM, 52),
    "replicate": shaped(p("r", "8_"), ALNUM, 37),
    "perplexity": shaped(p("pp", "lx-"), ALNUM, 48),
    "xai": shaped(p("xa", "i-"), ALNUM, 80),
    "nvidia": shaped(p("nv", "api-"), URLSAFE, 64),
    "pinecone": lambda r: p("pc", "sk_") + some(r, ALNUM, 5) + "_" + some(r, ALNUM, 64),
    "langsmith": lambda r: p("ls", "v2_pt_") + some(r, HEX, 32) + "_" + some(r, HEX, 10),
    "tavily": shaped(p("tv", "ly-"), ALNUM, 32),
    "github": lambda r: p("gh", r.choice("pousr"), "_") + some(r, ALNUM, 36),
    "github_fine": lambda r: p("github", "_pat_") + some(r, ALNUM, 22) + "_" + some(r, ALNUM, 59),
    "gitlab": lambda r: p("gl", r.choice(["pat", "dt", "rt", "ptt", "ft"]), "-") + some(r, URLSAFE, 20),
    "bitbucket": shaped(p("AT", "BB"), ALNUM, 32),
    "atlassian": lambda r: p("ATA", "TT3xFfGF0") + some(r, URLSAFE, 170) + "=" + some(r, HEX.upper(), 8),
    "slack_bot": lambda r: p("xo", "xb-") + f"{some(r, DIGITS, 12)}-{some(r, DIGITS, 13)}-{some(r, ALNUM, 24)}",
    "slack_user": lambda r: p("xo", "xp-") + f"{some(r, DIGITS, 12)}-{some(r, DIGITS, 12)}-{some(r, DIGITS, 13)}-"
    + some(r, HEX, 32),
    "slack_app": lambda r: p("xa", "pp-1-A") + f"{some(r, BASE32, 10)}-{some(r, DIGITS, 13)}-{some(r, HEX, 64)}",
    "discord_bot": _discord,
    "telegram": lambda r: some(r, "123456789", 9, 10) + ":AA" + some(r, URLSAFE, 33),
    "notion": shaped(p("nt", "n_"), ALNUM, 46),
    "linear": shaped(p("lin", "_api_"), ALNUM, 40),
    "figma": shaped(p("fi", "gd_"), URLSAFE, 40),
    "airtable": lambda r: p("p", "at") + some(r, ALNUM, 14) + "." + some(r, HEX, 64),
    "postman": lambda r: p("PM", "AK-") + some(r, HEX, 24) + "-" + some(r, HEX, 34),
    "npm": shaped(p("np", "m_"), ALNUM, 36),
    "pypi": shaped(p("py", "pi-AgEIcHlwaS5vcmc"), URLSAFE, 120, 160),
    "rubygems": shaped(p("ruby", "gems_"), HEX, 48),
    "dockerhub": shaped(p("dckr", "_pat_"), URLSAFE, 27),
    "crates": shaped(p("ci", "o"), ALNUM, 32),
    "stripe": lambda r: p(r.choice(["s", "r"]), "k_", r.choice(["live", "test"]), "_") + some(r, ALNUM, 24, 99),
    "stripe_webhook": shaped(p("wh", "sec_"), ALNUM, 32),
    "square": shaped(p("sq0", "csp-"), URLSAFE, 43),
    "square_access": shaped(p("EA", "AA"), URLSAFE, 60),
    "braintree": lambda r: p("access_", "token$production$") + some(r, LOWER + DIGITS, 16) + "$" + some(r, HEX, 32),
    "shopify": lambda r: p("sh", r.choice(["pat", "pca", "ppa", "pss"]), "_") + some(r, HEX, 32),
    "razorpay": shaped(p("rzp", "_live_"), ALNUM, 14),
    "sendgrid": lambda r: p("S", "G.") + some(r, URLSAFE, 22) + "." + some(r, URLSAFE, 43),
    "mailgun": shaped(p("ke", "y-"), HEX, 32),
    "mailchimp": lambda r: some(r, HEX, 32) + "-us" + str(r.randint(1, 21)),
    "twilio": shaped(p("S", "K"), HEX, 32),
    "brevo": lambda r: p("xkey", "sib-") + some(r, HEX, 64) + "-" + some(r, ALNUM, 16),
    "resend": lambda r: p("r", "e_") + some(r, ALNUM, 8) + "_" + some(r, ALNUM, 24),
    "sentry": lambda r: p("sn", "tryu_") + some(r, HEX, 64),
    "newrelic": shaped(p("NR", "AK-"), UPPER + DIGITS, 27),
    "grafana": lambda r: p("gl", "sa_") + some(r, ALNUM, 32) + "_" + some(r, HEX, 8),
    "dynatrace": lambda r: p("dt0", "c01.") + some(r, UPPER + DIGITS, 24) + "." + some(r, UPPER + DIGITS, 64),
    "age": lambda r: p("AGE-SECRET", "-KEY-1") + some(r, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "jwt": _jwt,
    "commonplace": lambda r: f"cp_{some(r, ALNUM, 12)}_{some(r, URLSAFE, 43)}",
}  # fmt: skip

#: Families told by what stands around them: a text with {} for the secret, and the secret.
IN_CONTEXT: dict[str, list[tuple[str, Maker]]] = {
    "pem_rsa": [("Deploy key, keep safe:\n{}\n", lambda r: pem(r)), ("key: |\n  {}", lambda r: pem(r, newline="\n  ")),
                ('{{"private_key": "{}"}}', lambda r: pem(r, "", newline="\\n"))],
    "pem_openssh": [("cat ~/.ssh/id_ed25519\n{}", lambda r: pem(r, "OPENSSH ", 5)),
                    ("> {}", lambda r: pem(r, "OPENSSH ", 5, newline="\n> "))],
    "pem_ec": [("{} was in the ticket", lambda r: pem(r, "EC ", 3)),
               ("with a pass phrase:\n{}", lambda r: pem(r, "ENCRYPTED ", 12))],
    "pgp": [("gpg --export-secret-keys gave\n{}", _pgp)],
    "aws_secret_key": [
        ("aws_secret_access_key = {}", shaped("", BASE64, 40)), ('"SecretAccessKey": "{}"', shaped("", BASE64, 40)),
        ("AWS_SECRET_ACCESS_KEY={}", shaped("", BASE64, 40)), ("the secret access key is {}", shaped("", BASE64, 40)),
        ("export AWS_SECRET_ACCESS_KEY='{}'", shaped("", BASE64, 40)),
    ],
    "aws_session_token": [("aws_session_token={}", shaped("IQoJb3JpZ2luX2Vj", BASE64, 300))],
    "slack_webhook": [
        (p("https://hooks.", "slack.com/services/T03AB12CD/B04EF34GH/{}"), shaped("", ALNUM, 24)),
        (p("curl https://hooks.", "slack.com/services/T0000000001/B0000000002/{} # alerts"), shaped("", ALNUM, 24)),
    ],
    "discord_webhook": [
        (p("post it to https://discord", ".com/api/webhooks/812345678901234567/{}."), shaped("", URLSAFE, 68)),
        (p("url: https://discord", "app.com/api/webhooks/812345678901234567/{}"), shaped("", URLSAFE, 68)),
    ],
    "azure_storage": [
        ("DefaultEndpointsProtocol=https;AccountName=acct;" + p("Account", "Key={};EndpointSuffix=core.windows.net"),
         lambda r: some(r, BASE64, 86) + "=="),
        (p("Account", "Key={}"), lambda r: some(r, BASE64, 86) + "=="),
    ],
    "azure_sas": [("https://acct.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig={}", lambda r:
                   some(r, ALNUM, 42) + "%3D")],
    "azure_shared_access": [("Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
                             lambda r: some(r, BASE64, 43) + "=")],
    "cloudflare_token": [("CLOUDFLARE_API_TOKEN={}", shaped("", URLSAFE, 40)),
                         ("CF_API_KEY: {}", shaped("", HEX, 37))],
    "cohere": [("COHERE_API_KEY={}", shaped("", ALNUM, 40)), ("Our Cohere API key is {}.", shaped("", ALNUM, 40)),
               ('co = cohere.Client(api_key="{}")', shaped("", ALNUM, 40))],
    "mistral": [("MISTRAL_API_KEY={}", shaped("", ALNUM, 32)), ("mistral api key: {}", shaped("", ALNUM, 32)),
                ('client = Mistral(api_key="{}")', shaped("", ALNUM, 32))],
    "datadog": [("DD_API_KEY={}", shaped("", HEX, 32)), ("DD-API-KEY: {}", shaped("", HEX, 32)),
                ("datadog app key: {}", shaped("", HEX, 40))],
    "twilio_auth_token": [("TWILIO_AUTH_TOKEN={}", shaped("", HEX, 32)), ("auth token is {}", shaped("", HEX, 32))],
    "heroku_uuid": [("HEROKU_API_KEY={}", uuid), ("the heroku api key is {}", uuid)],
    "npmrc": [("//registry.npmjs.org/:_authToken={}", uuid)],
    "okta": [("Authorization: SSWS {}", shaped("00", URLSAFE, 40))],
    "bearer": [("Authorization: Bearer {}", shaped("", URLSAFE, 32, 64)),
               ("curl -H 'authorization: bearer {}' https://api.example.com", shaped("", URLSAFE, 40)),
               ('headers = {{"Authorization": "Bearer {}"}}', shaped("", ALNUM, 40)),
               ("it sends Bearer {} with every call", shaped("", ALNUM, 48))],
    "basic": [("Authorization: Basic {}", lambda r: base64.b64encode(f"alice:{some(r, ALNUM, 14)}".encode()).decode())],
    "token_header": [("X-Api-Key: {}", shaped("", ALNUM, 32)), ("X-Auth-Token: {}", shaped("", HEX, 32)),
                     ("Authorization: token {}", shaped("", HEX, 40)), ("PRIVATE-TOKEN: {}", shaped("", URLSAFE, 20))],
    "postgres_url": [("postgres://app:{}@db.internal:5432/prod", shaped("", ALNUM, 12)),
                     ("DATABASE_URL=postgresql+psycopg://app:{}@10.0.0.3/prod", shaped("", ALNUM + "!$*", 16)),
                     ("It connects to postgres://svc:{}@db/prod, read only.", shaped("", ALNUM, 10))],
    "mongo_url": [("mongodb+srv://root:{}@cluster0.abcde.mongodb.net/test?retryWrites=true", shaped("", ALNUM, 16))],
    "redis_url": [("REDIS_URL=redis://:{}@cache.internal:6379/0", shaped("", ALNUM, 20)),
                  ("amqp://guest:{}@mq:5672//", shaped("", ALNUM, 12))],
    "basic_auth_url": [("git clone https://alice:{}@git.example.com/app.git", shaped("", ALNUM, 20)),
                       ("[the wiki](https://bob:{}@wiki.example.com/)", shaped("", ALNUM, 12))],
    "odbc": [("Server=tcp:sql1;Database=crm;User Id=crm;Password={};Encrypt=true", shaped("", ALNUM + "!#%", 14)),
             ("Driver={{ODBC}};Uid=sa;Pwd={};", shaped("Ab1", ALNUM, 9))],
    "password_phrase": [
        ("The password is {}", shaped("Qx7", ALNUM, 8)), ("her wifi password is {}, written on the router", shaped(
            "k9", ALNUM, 10)), ("Bob's Netflix password was {} until May", shaped("", ALNUM + "!#&", 9, 12)),
        ("pw: {}", shaped("a8", ALNUM, 8)), ("Das Passwort lautet {}.", shaped("Z3", ALNUM, 9)),
        ("Le mot de passe est {}", shaped("q7", ALNUM, 9)), ("La contraseña es {}", shaped("m4", ALNUM, 9)),
        ('passphrase: "{}"', lambda r: " ".join(some(r, LOWER, 4, 7) for _ in range(5))),
        ("Log in as admin with password {}", shaped("Pw", ALNUM, 6, 10, suffix="3!")),
        ("root password = {}", shaped("", ALNUM, 11, suffix="$9")),
        ("password `{}` for the VPN", shaped("t5", ALNUM, 9)),
    ],
    "password_config": [
        ("DB_PASSWORD={}", shaped("", ALNUM + "!@%", 12)), ("password: {}", shaped("r2", ALNUM, 10)),
        ('{{"user": "alice", "password": "{}"}}', shaped("h1", ALNUM, 10)), ("passwd = '{}'", shaped("v6", ALNUM, 9)),
        ("export PGPASSWORD={}", shaped("", ALNUM, 13)), ("spring.datasource.password={}", shaped("u3", ALNUM, 9)),
        ("smtp:\n  host: mail\n  password: \"{}\"\n", shaped("g8", ALNUM + "!&", 11)),
        ("<password>{}</password>", shaped("w2", ALNUM, 10)), ("DB_PASSWORD='{}'", words(2)),
        ('PGPASSWORD="{}"', words(4)),
        ("machine git.example.com login alice password {}", shaped("n7", ALNUM, 11)),
    ],
    "password_command": [
        ("mysql --user=root --password={} crm", shaped("y4", ALNUM, 9)),
        ("sshpass -p '{}' ssh host", shaped("e5", ALNUM, 9)),
        ("curl -u alice:{} https://api.example.com/v1", shaped("x9", ALNUM, 12)),
        ("ALTER USER crm WITH PASSWORD '{}';", shaped("b6", ALNUM, 10)),
        ("CREATE USER crm IDENTIFIED BY '{}'", shaped("c7", ALNUM, 10)), ("gh auth --token {}", shaped("", HEX, 40)),
    ],
    "generic_secret": [
        ("client_secret: {}", shaped("", URLSAFE, 32)), ("SECRET_KEY = '{}'", shaped("", ALNUM + "!@#%&*", 50)),
        ('"api_key": "{}"', shaped("", HEX, 32)), ("JWT_SECRET={}", shaped("", BASE64, 44)),
        ("The API key for the weather service is {}", shaped("", HEX, 32)), ("token={}", shaped("", ALNUM, 32)),
        ("https://maps.example.com/v1?api_key={}&q=zurich", shaped("", ALNUM, 24)),
        ("access_token: {}", shaped("", ALNUM, 40)), ("encryption key: {}", lambda r: some(r, BASE64, 43) + "="),
        ('const apiKey = "{}";', shaped("", ALNUM, 30)), ("webhook secret -> {}", shaped("", HEX, 40)),
    ],
    "card": [
        ("Card {} exp 04/29", lambda r: card(r)),
        ("paid with {} yesterday", lambda r: card(r, "5" + r.choice("12345"))),
        ("Amex {}", lambda r: card(r, "37", 15)), ("the card number is {}.", lambda r: card(r, joint="")),
        ("card={}", lambda r: card(r, joint="-")), ("Visa: {} CVC 123", lambda r: card(r, "4", joint=" ")),
    ],
    "otp_seed": [("otpauth://totp/Acme:alice?secret={}&issuer=Acme", shaped("", BASE32, 32))],
    "ethereum": [("wallet private key: 0x{}", shaped("", HEX, 64)), ("private key 0x{}", shaped("", HEX, 64)),
                 ("Alice's wallet key is 0x{}, on the old laptop", shaped("", HEX, 64)),
                 ("secret key {} of the node", shaped("", HEX, 64)),
                 ("the private key for wallet 0x" + "4f" * 20 + " is 0x{}", shaped("", HEX, 64))],
    "said_in_quotes": [
        ("the password is '{}'", words(1)), ('the password is "{}"', words(2)), ("the password is '{}'.", words(3)),
        ("the passphrase for the backup is '{}'", words(4)), ("Bob's router password is “{}”", words(1)),
        ("The password for the wiki was `{}`, now it is another", words(1, "")), ("Das Passwort ist „{}“.", words(2)),
        ('The password is now "{}"', lambda r: words(1)(r).capitalize()), ("Le mot de passe est « {} »", words(1)),
        ("Bob changed the admin password to '{}' today", words(1)), ('La contraseña es "{}"', words(2)),
        ("the password is ‘{}’", words(3, "-")), ('set my passphrase to "{}"', words(5)),
    ],
    "password_option": [
        ("mysql -u root -p{} mydb", shaped("S3", ALNUM, 6)), ("mysqldump -uroot -p'{}' crm > crm.sql", words(1)),
        ("docker exec db mysqladmin -P3307 -p{} status", words(1)), ("mariadb -h db \\\n  -u app \\\n  -p{}", words(1)),
        ("sshpass -p{} ssh host", shaped("e5", ALNUM, 9)), ("docker login -u alice -p {} r.example.com", words(2, "-")),
        ("mongodump --host db -u admin -p {} --out x", words(1)), ("redis-cli -h cache -a {} ping", words(1)),
        ("mysql -p12{} crm", shaped("", DIGITS, 6)),
    ],
    "registry_login": [
        ('{{"auths":{{"r.example.com":{{"auth":"{}"}}}}}}', _login), ('"auth": "{}",', _login),
        ('{{\\"auth\\": \\"{}\\"}}', _login), ("//r.example.com/:_auth={}", _login), ('_auth = "{}"', _login),
    ],
    "seed_phrase": [
        ("The seed phrase is {}", words(12)), ("recovery phrase: {}", words(24)), ("mnemonic = '{}'", words(15)),
        ('MNEMONIC="{}"', words(18)), ('{{"mnemonic": "{}"}}', words(12)), ("my seed phrase:\n{}\n", _numbered),
        ("The recovery phrase for Bob's wallet is: {}, and the paper is in the safe", words(21, ", ")),
        ("seed phrase (12 words): {}", words(12)), ("mnemonic is {} and then there was tea", words(12)),
    ],
    "session_cookie": [
        ("Cookie: sessionid={}", shaped("", LOWER + DIGITS, 32)), ("Cookie: theme=dark; session={}; lang=de", uuid),
        ("Set-Cookie: PHPSESSID={}; path=/; HttpOnly", shaped("", LOWER + DIGITS, 26)),
        ("curl --cookie 'JSESSIONID={}' https://example.com", shaped("", HEX.upper(), 32)),
        ("Set-Cookie: connect.sid=s%3A{}; Path=/", shaped("", URLSAFE, 32)),
        ('requests.get(url, cookies={{"sessionid": "{}"}})', shaped("", ALNUM, 32)),
        ("Cookie: __Host-session={}", shaped("", URLSAFE, 60)), ("document.cookie = 'sid={}'", shaped("", ALNUM, 24)),
    ],
    "putty": [
        ("PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: alice\nPublic-Lines: 1\nAAAA\n"
         "Private-Lines: 2\n{}\nPrivate-MAC: " + "0f" * 32,
         lambda r: some(r, BASE64, 64) + "\n" + some(r, BASE64, 42) + "=="),
        ("Private-Lines: 1\\n{}\\nPrivate-MAC: 00", shaped("", BASE64, 48)),
    ],
    "kubeconfig": [
        ("users:\n- name: admin\n  user:\n    client-key-data: {}\n", shaped(p("LS0tLS1", "CRUdJTi"), BASE64, 400)),
        ('{{"user": {{"client-key-data": "{}"}}}}', shaped("", BASE64, 200)),
    ],
    "splunk": [
        ("Authorization: Splunk {}", uuid), ("SPLUNK_HEC_TOKEN={}", uuid), ("the Splunk HEC token is {}", uuid),
        ('{{"splunk_token": "{}"}}', uuid),
    ],
    "signed_url": [
        ("https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=300&X-Amz-Signature={}",
         shaped("", HEX, 64)),
        ("https://s3.amazonaws.com/b/k?Expires=1700000000&Signature={}", shaped("", ALNUM, 27, suffix="%3D")),
        ("https://storage.googleapis.com/b/o?X-Goog-Date=20260301T000000Z&X-Goog-Signature={}&x=1",
         shaped("", HEX, 512)),
        ("https://a.blob.core.windows.net/c/b?sv=2022-11-02&sp=r&sig={}", shaped("", ALNUM, 43, suffix="%3D")),
    ],
    "token_in_url": [
        ("git clone https://{}@git.example.com/alice/app.git", shaped("", ALNUM, 40)),
        ("https://x-access-token:{}@git.example.com/app", shaped("", ALNUM, 40)),
        ("https://api.example.com/v1?key={}&q=zurich", shaped("", ALNUM, 32)),
        ("https://api.example.com/feed?page=2&auth={}", shaped("", HEX, 40)),
        ("wss://rt.example.com/socket?user_token={}", shaped("", URLSAFE, 40)),
    ],
    "dotnet": [
        ('<add key="DbPassword" value="{}" />', shaped("v6", ALNUM, 9)),
        ('<add key="SmtpPwd" value="{}"/>', words(2, "-")),
        ('<add key="Stripe:ApiKey" value="{}" />', shaped("", ALNUM, 32)),
        ('<add name="Db" connectionString="Server=db;Database=crm;User Id=sa;Password={};Timeout=30" />',
         shaped("s4", ALNUM, 10)),
        ("Data Source=db;Initial Catalog=crm;User ID=sa;Pwd={};", shaped("s4", ALNUM, 10)),
        ("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=core.windows.net",
         shaped("", BASE64, 86)),
    ],
    "flask": [
        ("app.secret_key = '{}'", shaped("dev-", LOWER, 8, suffix="-4ever")),
        ("app.config['SECRET_KEY'] = '{}'", shaped("", HEX, 32)),
        ('app.secret_key = b\'_5#y2L"{}\\n\\xec]/\'', shaped("", ALNUM, 10)),
        ('SECRET_KEY = b"{}"', shaped("", ALNUM, 24)),
    ],
    "azure_key": [("key1: {}", lambda r: some(r, ALNUM, 52) + p("JQQ", "J99") + some(r, ALNUM, 26))],
    "gcp_refresh": [("refresh with {}", shaped(p("1/", "/0"), URLSAFE, 60))],
    "dropbox": [("use {} for the folder", shaped(p("s", "l."), URLSAFE, 130))],
    "teams_webhook": [("https://acme.webhook.office.com/webhookb2/{}", lambda r: f"{uuid(r)}@{uuid(r)}")],
    "django": [("SECRET_KEY=django-insecure-{}", shaped("", LOWER + DIGITS + "!@$%^&*-_=+", 50))],
}  # fmt: skip
