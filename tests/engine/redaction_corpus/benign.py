"""Texts that look dangerous and hold no secret: hashes, ids, numbers, placeholders, code, prose about passwords."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

from .credentials import ALNUM, BASE64, DIGITS, HEX, LOWER, UPPER, some, uuid

ROOT = Path(__file__).parents[3]
_SECRET_MATERIAL = Path(__file__).parent

PROSE = (
    "The password is required.", "The password is case-sensitive.", "Her password was changed last week.",
    "The password is stored as a bcrypt hash.", "Passwords are hashed with argon2id.",
    "The password is base64-encoded.", "Ask Alice for the password.", "The password is in 1Password.",
    "Password: see the wiki.", "password is too short", "The password is at least 12 characters long.",
    "Alice forgot her password again and Bob reset it.", "The token is expired.", "token is missing",
    "The API key is rotated every 90 days.", "api key: ask Bob", "The secret is to salt the water.",
    "The secret ingredient is cardamom.", "A token of gratitude: flowers.", "Bob holds the keys to the city.",
    "The key is under the mat.", "Authorization: required for all endpoints.", "authorization: see section 4.2.1",
    "Bearer tokens are accepted.", "Use Bearer authentication.", "Basic authentication is turned off.",
    "The passphrase is four random words.", "Passcode is optional.", "No password: the demo is open.",
    "password reset link sent to alice@example.com", "Secret Santa is on Friday.",
    "The access token is valid for 3600 seconds.", "The refresh token is valid for 30 days.",
    "Tokens: 4096 in, 512 out.", "max_tokens: 8192", "The model has a context of 200k tokens.",
    "tokenizer: cl100k_base", "The password is never logged.", "Our password policy: 12+ characters, one digit.",
    "The door code is 4711.", "Alice's locker is 1234.", "The PIN is kept in the safe.", "pw: none", "password: none",
    "password: null", "Das Passwort ist abgelaufen.", "Das Passwort muss geändert werden.",
    "Das Passwort ist erforderlich.", "Le mot de passe est obligatoire.", "Le mot de passe est oublié.",
    "La contraseña es obligatoria.", "La contraseña es demasiado corta.", "パスワードは必須です。", "密码是必填项。",
    "Пароль обязателен.", "A senha é obrigatória.", "Il token è scaduto.", "Kredentials liegen im Tresor.",
    "The credentials were revoked.", "The private key never leaves the HSM.",
    "A PEM file starts with -----BEGIN PRIVATE KEY----- and ends alike.",
    "Never paste a -----BEGIN RSA PRIVATE KEY----- block here.", "-----BEGIN CERTIFICATE----- is public.",
    "Basic auth in URLs (https://user@host) is deprecated.", "The pass is closed in winter: take the tunnel.",
    "pass: 12, fail: 0", "Tests pass: 1204 of 1204", "Gotthard pass: 2106 m", "The boarding pass is in the app.",
    "Secret key rotation: quarterly.", "The secret is stored in Vault under kv/prod/db.", "token: string",
    "The client secret is optional for public clients.", "JWTs start with eyJ because of base64.",
    "AWS access keys start with AKIA.", "GitHub tokens start with ghp_.",
    "Stripe keys begin with sk_live_ or sk_test_.", "OpenAI keys look like sk-...", "Slack tokens: xoxb-…, xoxp-…",
    "The prefix glpat- marks GitLab tokens.", "The word password is the most used password.", "Enter your password:",
    "New password (again):", "Password:", "Two-factor: password + code.", "I use a password manager.",
    "user: alice, role: admin, token: revoked", "key: value", "secret: none", "api_key: required",
    "The session token is bound to the device.", "SHA-256 is not a password hash.", "The password is SHA256-hashed.",
    "The password is 2FA-protected.", "His password is longer than 8-12 characters.", "The API token is read-only.",
    "The API key is limited to eu-west-1.", "The password was reset on 2024-05-17.",
    "The password is valid until 31.12.2026.", "The token is from 2023-11-02.",
    "the password is 'too short'", 'password is "required"', "The error says the password is 'not set'.",
    'It reports that the password is "incorrect".', "the password is 'case sensitive'", "The password is `hashed`.",
    "The password was 'forgotten' again.", 'The passphrase is "at least four words".', "The password is “optional”.",
    'The password is "never written down".', "Das Passwort ist „zu kurz“.", "Das Passwort ist 'falsch'.",
    'Le mot de passe est "trop court".', 'La contraseña es "incorrecta".', "the password is 'SHA-256' hashed",
    "Bob set the password to 'expired'.", 'The password for the demo is "empty".', "The password is `None` by default.",
    "The password is `config.db.password`.", "the password is '/run/secrets/pw'", 'The password is "${DB_PASSWORD}".',
    "The seed phrase is shown once and must then be written down by the user on paper and kept in a safe place.",
    "A recovery phrase is a list of twelve or more words from which the keys of a wallet can be made again.",
    "Mnemonic: my very educated mother just served us nachos.", "The mnemonic is: every good boy does fine.",
    "mnemonic: " + "abandon " * 11 + "about", "Recovery phrase: ask Alice, she keeps it.",
    "The seed is 42 and the phrase is long.", "Cookies are baked at 180 degrees, said Bob.",
    "The session cookie expires after 30 minutes.", "The cookie is called sessionid and is HttpOnly.",
)  # fmt: skip

CODE = (
    "token = get_token()", "password = getpass.getpass()", "password = os.environ['DB_PASSWORD']",
    "api_key = os.getenv('API_KEY')", "const token = process.env.API_TOKEN;", "self.password = password",
    "this.token = token;", "password: str", "password: Optional[str] = None",
    "def login(user: str, password: str) -> bool:", "if not check_password(user, password):",
    "user.set_password(new_password)", "token: string;", "apiKey: string",
    "password = models.CharField(max_length=128)", "password = forms.CharField(widget=forms.PasswordInput)",
    "secret = vault.read('kv/db')", "secret = config.secret", "password = config.db.password",
    "token = request.headers['x']", "headers = {'Authorization': f'Bearer {token}'}",
    'headers = {"Authorization": "Bearer " + token}', "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${TOKEN}", "Authorization: Basic <credentials>",
    "curl -H 'Authorization: Bearer YOUR_TOKEN'", "-H 'X-Api-Key: YOUR_API_KEY'",
    "curl -u USER:PASSWORD https://api.example.com", "curl -u $USER:$PASS https://api.example.com",
    "OPENAI_API_KEY=YOUR_API_KEY", "OPENAI_API_KEY=<your key>", "API_KEY=${API_KEY}", "API_KEY=$API_KEY",
    "TOKEN={{ token }}", "password: {{ vault_password }}", "password: ${DB_PASSWORD}",
    "password: ${{ secrets.PASSWORD }}", "password: !vault |", "password: '********'", 'password: "xxxxxxxx"',
    "PASSWORD=changeme", "DB_PASSWORD=", "DB_PASSWORD=''", 'PASSWORD=""', "password: <password>",
    "password=<REDACTED>", "password=[hidden]", "postgres://user:password@localhost:5432/db",
    "postgres://user:pass@host/db", "postgres://${USER}:${PASS}@db/prod", "postgres://<user>:<password>@<host>/<db>",
    "https://user:****@example.com", "mysql://root@localhost/db", "redis://localhost:6379/0",
    "http://localhost:8080/a@b", "ssh git@github.com:alice/app.git",
    "https://github.com/alice/app/blob/main/auth/token.py", "https://example.com/reset?token=",
    "https://example.com/login?next=/settings", '<input type="password" name="password" placeholder="Password">',
    '<label for="password">Password</label>', '{"password": {"type": "string", "minLength": 8}}',
    '{"password": "string"}', '{"username": "string", "password": "string"}',
    '{"token_type": "bearer", "expires_in": 3600}', '{"password": "Passwort"}', '{"password": "Contraseña"}',
    '{"password": "Mot de passe"}', '"password": "required"', "secretName: tls-cert-2024",
    "secretKeyRef:\n  name: db\n  key: password", "imagePullSecrets:\n- name: registry-2",
    "kubectl create secret generic db --from-literal=password=$PW",
    "valueFrom: {secretKeyRef: {name: api, key: token}}", "export TOKEN=$(cat /run/secrets/token)",
    "password = input('Password: ')", "passwd -l alice", "pwd", "pwd: /home/alice", "token_count = len(tokens)",
    "num_tokens=1024", "max_token_length: 512", "tokens_per_second: 88.2", "primary_key=True",
    "cache_key = f'user:{id}:v2'", "key = lambda x: x[1]", "sort_key='created_at'",
    "sk-learn is not sk-anything-like-a-real-key", "from sklearn.model_selection import train_test_split",
    "assert response.status_code == 401, 'token rejected'", "raise ValueError('password too short')",
    "password_hash = hash_password(password)", "PasswordField(min_length=8)",
    "z.object({ password: z.string().min(8) })", "type Credentials = { user: string; password: string }",
    "auth: { token: session.token }", "access_token=access_token", "client_secret=settings.CLIENT_SECRET",
    "secret_key=app.config['SECRET_KEY']", "SECRET_KEY = env('SECRET_KEY')", "AWS_SECRET_ACCESS_KEY=<secret>",
    "aws_secret_access_key = YOUR_SECRET_KEY", "AKIA................", "sk-...", "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "hf_XXXXXXXXXXXXXXXXXXXXXXXX", "xoxb-your-token-here",
    "sk-your-api-key-goes-right-here-ok", "Bearer YOUR_ACCESS_TOKEN_GOES_HERE", "re_entrant_lock_acquired_by_thread",
    "key-value-store-benchmark-results", "npm_config_registry=https://registry.npmjs.org", "rk_live_view",
    "hf_hub_download(repo_id='org/model')", "gsk_enabled = False", "pat_terns = []", "whsec_length = 32",
    "git show 3f2a9c1 --stat", "docker pull alpine@sha256:" + "0f" * 32, "mysql -u root -p crm",
    "psql -h db -U app -W", "--password-file /run/secrets/pw", "--token-required", "--password PROMPT",
    "--api-key $KEY", "sshpass -f file ssh host", "WITH PASSWORD NULL", "IDENTIFIED BY PASSWORD EXPIRE",
    "login alice password ********",
    "docker run -p 8080:80 web", "docker run -p80:80 web", "docker run --name mysql -p3306:3306 mysql:8",
    "docker run --name mysql -p127.0.0.1:3306:3306 mysql", "docker run --name mongo -p 27017:27017 mongo",
    "docker exec mongo mkdir -p /data/db", "mkdir -p dir", "mkdir -p src/app && cp -p a b", "ssh -p 2222 alice@host",
    "psql -p 5432 -U app crm", "psql -p5433 app", "mysql -u root -p", "mysql -P 3306 -h db -p crm", "mysql -P3306 crm",
    "mysql -u root -p$MYSQL_PWD crm", 'mysql -p"$PW" crm', "mysql -uroot -p<password> crm", "mongosh -u alice -p",
    "docker login -u alice -p $TOKEN", "docker compose -p shop up", "nmap -p1-65535 host", "redis-cli -h cache ping",
    "Cookie: theme=dark; lang=de", "Set-Cookie: consent=yes; Path=/; Max-Age=31536000", "Cookie: _ga=GA1.2.12345678.16",
    "Set-Cookie: sessionid=deleted; Max-Age=0", "Cookie: session=<session id>", "Cookie: sessionid=$SESSION_OF_ALICE",
    "SESSION_COOKIE_NAME = 'sessionid'", "session = requests.Session(); session.cookies.clear()",
    "res.cookie('session', sign_the_session(value))", "cookies={'sessionid': session_of_the_browser}",
    'ERR_PASSWORD="Password is too short"', "HELP_PASSWORD='not required'", 'DB_PASSWORD="$(cat /run/pw file)"',
    '{"auth": "none"}', '{"auth": "basic"}', "auth: oauth2_client_credentials", "auth=HTTPBasicAuth(user, secret)",
    "_auth = ${NPM_AUTH}", "auth: " + base64.b64encode(b"no colon in here").decode(),
    'print("the password is " + word + " and nothing else")', 'echo "the password is "$PW" now"',
    "f'the password is {word!r}'", 'log("password is ", word, " for ", user)',
)  # fmt: skip


def _generated(rng: Random) -> Iterator[str]:
    for _ in range(60):
        yield f"Request id {uuid(rng)} took {rng.randint(1, 900)} ms"
        yield f"Memory {uuid(rng)} supersedes {uuid(rng)}."
        yield f"commit {some(rng, HEX, 40)}"
        yield f"Fixed in {some(rng, HEX, 7)}, see also {some(rng, HEX, 10)}."
        yield f"sha256:{some(rng, HEX, 64)}"
        yield f"md5 of the image is {some(rng, HEX, 32)}"
        yield f"integrity sha512-{some(rng, BASE64, 86)}=="
        yield f"![logo](data:image/png;base64,iVBORw0KGgo{some(rng, BASE64, 300)}=)"
        yield f'etag: "{some(rng, HEX, 32)}"'
        yield f"version {rng.randint(0, 20)}.{rng.randint(0, 40)}.{rng.randint(0, 99)}-rc.2+build.{some(rng, HEX, 8)}"
        yield f"order {some(rng, DIGITS, 3)}-{some(rng, DIGITS, 7)}-{some(rng, DIGITS, 7)} shipped"
        yield f"Order number {rng.randint(10**9, 10**10)} for Alice"
        yield f"Invoice INV-{rng.randint(2019, 2026)}-{some(rng, DIGITS, 6)}"
        yield f"call +41 79 {some(rng, DIGITS, 3)} {some(rng, DIGITS, 2)} {some(rng, DIGITS, 2)}"
        yield f"phone (0{some(rng, DIGITS, 2)}) {some(rng, DIGITS, 3)} {some(rng, DIGITS, 4)}"
        yield f"ISBN 978-{some(rng, DIGITS, 1)}-{some(rng, DIGITS, 3)}-{some(rng, DIGITS, 5)}-{some(rng, DIGITS, 1)}"
        yield f"at {rng.randint(16 * 10**11, 19 * 10**11)} ms, {rng.randint(16, 19)}{some(rng, DIGITS, 17)} ns"
        yield f"2026-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}T0{rng.randint(0, 9)}:22:11.{some(rng, DIGITS, 6)}Z"
        yield f"/var/lib/app/{some(rng, LOWER, 5)}/{some(rng, HEX, 2)}/{some(rng, HEX, 38)}.bin"
        yield f"C:\\Users\\alice\\AppData\\Local\\{some(rng, ALNUM, 12)}\\cache.db"
        yield f"https://example.com/{some(rng, LOWER, 8)}/{some(rng, ALNUM, 11)}?page=2#L{rng.randint(1, 900)}"
        yield f"https://youtu.be/{some(rng, ALNUM, 11)}"
        yield f"docker run registry.example.com/app:{some(rng, HEX, 12)}"
        yield f"arn:aws:iam::{some(rng, DIGITS, 12)}:role/{some(rng, LOWER, 9)}"
        yield f"i-0{some(rng, HEX, 16)} in vpc-{some(rng, HEX, 17)}"
        yield f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{some(rng, BASE64, 43)} alice@laptop"
        yield f"fingerprint SHA256:{some(rng, BASE64, 43)}"
        yield f"trace_id={some(rng, HEX, 32)} span_id={some(rng, HEX, 16)}"
        yield f"tx 0x{some(rng, HEX, 64)} in block {rng.randint(10**7, 2 * 10**7)}"
        yield f"wallet 0x{some(rng, HEX, 40)}"
        yield f"{some(rng, HEX, 64)}  release.tar.gz"
        yield f"blob {some(rng, HEX, 64)} in the object store, signed off by Bob"
        yield f"SHA-256 of the private key file: {some(rng, HEX, 64)}"
        yield f"The wallet paid in transaction 0x{some(rng, HEX, 64)}; the private key stays offline."
        yield f"public key {some(rng, HEX, 64)}"
        yield f"Set-Cookie: _csp={some(rng, HEX, 16)}; Path=/"
        yield f"docker run -p{rng.randint(80, 65535)}:{rng.randint(80, 65535)} mysql"
        yield f"session_id: {uuid(rng)}"
        yield f'"etag": "W/{some(rng, ALNUM, 22)}", "id": "{some(rng, ALNUM, 20)}"'
        yield f"tweet {rng.randint(10**18, 2 * 10**18)} by @alice"
        yield f"IMEI 35{some(rng, DIGITS, 13)}"
        yield f"GTIN {some(rng, '0', 1)}{some(rng, DIGITS, 13)}"
        yield f"lat {rng.uniform(-90, 90):.6f}, lon {rng.uniform(-180, 180):.6f}"
        yield f"{some(rng, UPPER, 3)}-{rng.randint(100, 9999)}: flaky test in test_{some(rng, LOWER, 6)}.py:88"
        yield f"colour #{some(rng, HEX, 6)} on #{some(rng, HEX, 6)}"
        yield f"MAC {':'.join(some(rng, HEX, 2) for _ in range(6))}, IPv6 2001:db8::{some(rng, HEX, 4)}"
        yield base64.b64encode(some(rng, ALNUM + " ", 90).encode()).decode()


def _stored() -> Iterator[str]:
    for name in ("memories", "answerable", "unanswerable"):
        for line in (ROOT / "bench" / "data" / "corpus" / f"{name}.jsonl").read_text("utf-8").splitlines():
            document = json.loads(line)
            yield document.get("text") or document.get("question") or document.get("query") or line


def _paragraphs() -> Iterator[str]:
    """The project's own pages and tests, a paragraph each; the pages about redaction show what it does."""
    for path in sorted(
        [*(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    ):
        if path.is_relative_to(_SECRET_MATERIAL) or "redact" in str(path.relative_to(ROOT)):
            continue
        for paragraph in path.read_text("utf-8").split("\n\n"):
            if paragraph.strip():
                yield paragraph


def benign(seed: int = 4) -> Iterator[str]:
    yield from PROSE
    yield from CODE
    yield from _generated(Random(seed))
    yield from _stored()


def paragraphs() -> Iterator[str]:
    yield from _paragraphs()
