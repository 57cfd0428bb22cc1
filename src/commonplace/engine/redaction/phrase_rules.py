"""Secrets told by what stands around them: assignments, headers, addresses, commands, sentences; and card numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from commonplace.engine.redaction.prose_rules import SEED_WORDS, is_said_password, is_seed_phrase
from commonplace.engine.redaction.rule import (
    Rule,
    is_assigned,
    is_basic_login,
    is_passphrase,
    is_password,
    is_quoted_password,
    is_random,
    is_token,
    is_url_password,
)

_PASSWORD = (
    r"(?:passwor[dt]|passwd|passphrase|passcode|kennwort|mot[ _]de[ _]passe|contrase(?:ñ|n)a|wachtwoord|senha|"
    r"hasło|haslo|пароль|密码|密碼|パスワード|pwd|(?<![a-z])pw|(?<![a-z])pass)"
)
_SECRET = (
    r"(?<!public)(?<!public[ _-])(?<!publickey)"
    r"(?:(?:api|app|secret|access|auth|signing|encryption|master|private|account|service|license)[ _-]?key|"
    r"(?:access|auth|refresh|session|bearer|api|bot|id|private|deploy|personal)[ _-]?token|client[ _-]?secret|"
    r"secret|token|credentials?)"
)
_ENDING = r"(?i:[_-]?(?:prod(?:uction)?|dev|staging|live|test|main|value|base|old|new|[0-9]{1,2}))?"
_SEPARATOR = r"(?:\\?[\"'`])?\]?[ \t]{0,8}(?::=|=>|->|→|[:=])[ \t]{0,8}"
_DOUBLE = r"\\?\"(?P<double>[^\"\\\r\n]{4,512})\\?\""
_SINGLE = r"'(?P<single>[^'\\\r\n]{4,512})'"
_QUOTED = rf"(?:{_DOUBLE}|{_SINGLE}|`(?P<ticked>[^`\\\r\n]{{4,512}})`|[“「«](?P<curly>[^”」»\r\n]{{4,512}})[”」»])"
_CURLY = r"[“「«](?P<around>[^”」»\r\n]{4,512})[”」»]"
# "Pass `verbose=True`" announces no password, but "pass: …" does.
_NOT_THE_VERB = r"(?<!(?i:pass))"
_BARE = r"(?P<bare>[^\s\"'`,;<>(){}\[\]\\|。，&]{4,512}+)(?![(\[{])"
_WORD = r"(?P<word>[^\s\"'`<>|]{4,128}+)"
_RANDOM = r"(?P<random>[A-Za-z0-9_+/=.~!@#$%^*-]{16,512}+)(?![(\[{])"
# What a sentence may put between the word and the value: "for the router", "of Bob's account".
_ABOUT = r"(?i: (?:for|of|to|on|at|für|von|du|de|del|della|pour|para)(?: [^\s:=]{1,30}){1,5}?)?"
_IS = r"(?i:[ ]?(?::=|=>|->|→|[:=])[ ]?| (?:is|was|are|will be|ist|war|lautet|est|es|è|to)[: ] ?|是|は|：)"
# A sentence says "is", where a form or a file of settings has a colon: there the words in quotes are often a label.
_SAYS = (
    r"(?i: (?:is|was|will be|ist|war|lautet|est|es|è)(?: (?:now|still|just|simply|currently|jetzt|noch))?[: ] ?|是|は)"
)
_SAID = rf"(?:«\s?(?P<guillemets>[^»\s][^»\r\n]{{3,510}}?)\s?»|{_QUOTED}|[‘„](?P<low>[^’“”\r\n]{{4,512}})[’“”])"
# Of a command up to its end; a line may be continued.
_ARGUMENTS = r"(?:[^\n|;&\\]|\\\n?){0,200}?"
_ARGUMENT = rf"(?:{_SINGLE}|{_DOUBLE}|(?P<word>[^\s\"'`<>|;&-][^\s\"'`<>|;&]{{3,255}}+))"
# Ports are published alike (-p80:80), and long options are written with one dash by some.
_NO_PORT = r"(?!(?:[0-9.]{7,15}:)?[0-9]{1,5}(?:[-:/\s]|\Z)|ort\b|rotocol\b|lugin|rint|ipe\b|assword)"
_SESSION = (
    r"(?:sess(?:ion)?(?:[._-]?(?:id|key|data|token))?|(?<![a-z])[sh]?sid|(?<=_)logged_in_[0-9a-f]{32}|user_session)"
)
_COOKIE = r"(?P<text>[^\s;,\"'`<>&\\(){}\[\]=]{16,4096}+={0,2})(?![(\[{])"
_SEED = r"(?:(?:seed|recovery|backup)[ _-]?phrase|mnemonic(?:[ _-]?(?:phrase|words))?)"
# Between the word and the key, but not where the number is told to be of another kind.
_KEY_ABOUT = (
    r"(?:(?!(?i:hash|file|sha-?[0-9]|digest|finger|checksum|commit|public|\btx|transaction|address))[^\n;]){0,80}?"
)

# A setting of .NET: <add key="DbPassword" value="…" />
_ADDED = r"<add[ \t]{{1,8}}key=[\"'][^\"'\n]{{0,60}}?{}[^\"'\n]{{0,20}}[\"'][ \t]{{1,8}}value=[\"']"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

# A name of settings is written in capitals and may go on: DB_PASSWORD_PROD=
_SETTING = r"(?<=[A-Z])(?:_[A-Z0-9]{1,12})?="


def _behind(lead: str, triggers: str, *rows: tuple[str, str, Callable[[str], bool]]) -> tuple[Rule, ...]:
    return tuple(Rule(label, tuple(triggers.split(",")), pattern, accepts, lead) for label, pattern, accepts in rows)


PHRASES: tuple[Rule, ...] = (
    *_behind(r"secret[ _-]?(?:access[ _-]?)?key", "secret",
             ("aws_secret_key", r"[^A-Za-z0-9+/\n]{1,8}(?:(?:is|was)[ ])?[^A-Za-z0-9+/\n]{0,3}"
              r"(?P<text>[A-Za-z0-9+/]{40})(?![A-Za-z0-9+/])", is_random)),
    *_behind(_PASSWORD, "pass,pw,kennwort,contrase,wachtwoord,senha,hasł,haslo,парол,密,パスワード",
             ("password", _ENDING + _SEPARATOR + _QUOTED, is_quoted_password),
             ("password", r"(?<=(?i:phrase))" + _SEPARATOR + _QUOTED, is_passphrase),
             ("password", _ENDING + _SEPARATOR + _BARE, is_password),
             ("password", _SETTING + r"(?P<env>[^\s\"'#]\S{3,511}+)", is_assigned),
             ("password", rf"{_SETTING}(?:{_SINGLE}|{_DOUBLE})", is_said_password),
             ("password", rf"{_NOT_THE_VERB}{_ABOUT}{_IS}(?:{_QUOTED}|{_WORD})", is_password),
             ("password", rf"{_NOT_THE_VERB}(?:[ ](?:{_QUOTED}|{_WORD})|(?=[“「«]){_CURLY})", is_password),
             ("password", r"[ \t]{0,4}:[ \t]{0,8}\r?\n[ \t]{0,8}(?P<word>\S{4,128}+)(?=[ \t]{0,8}(?:[\r\n]|\Z))",
              is_password),
             ("password", rf"{_NOT_THE_VERB}[ ]{{1,4}}(?:{_SINGLE}|{_DOUBLE})", is_quoted_password),
             ("password", rf"{_NOT_THE_VERB}{_ABOUT}{_SAYS}{_SAID}", is_said_password)),
    *_behind(rf"(?<![a-z])(?:re)?(?:set|chang(?:e|ed|ing))[ ][^\n\"'=:]{{0,40}}?{_PASSWORD}[ ]to[ ]",
             "rd to ,wd to ,phrase",
             ("password", _SAID, is_said_password)),
    *_behind(r"machine\s{1,8}\S{1,128}\s{1,8}login\s{1,8}\S{1,64}\s{1,8}password[ \t]{1,8}", "machine",
             ("password", _WORD, is_assigned)),
    *_behind(r"(?:login|user(?:name)?)[ \t]{1,8}\S{1,64}[ \t\n]{1,8}pass(?:word)?[ \t]{1,8}", "pass",
             ("password", _WORD, is_password)),
    *_behind(r"(?:creds?|credentials|log-?in)(?: are| is|:| =|=)[ ]{0,2}", "cred,login,log-in",
             ("password", rf"[^\s:/@]{{2,40}}+[ ]?[:/][ ]?(?!/){_WORD}", is_password)),
    *_behind(r"(?:user|grant)[ ][^\n;]{0,120}?identified(?: with [a-z0-9_]{1,40})? by[ ]{1,4}", "identified",
             ("password", rf"(?:{_SINGLE}|{_DOUBLE})", is_quoted_password)),
    *_behind(r"<(?:password|passwd|pwd|secret|token|api_?key)>", "<pass,<pwd,<secret,<token,<api",
             ("password", r"(?P<text>[^<>\s]{4,512}+)</", is_quoted_password)),
    *_behind(_ADDED.format(_PASSWORD), "<add",
             ("password", r"(?P<text>[^\"'\n<>]{4,512}+)", is_quoted_password)),
    *_behind(_ADDED.format("(?:key|token|secret)"), "<add",
             ("secret", r"(?P<text>[^\"'\n<>]{8,512}+)", is_random)),
    *_behind(r"secret_key(?:[\"']\])?[ ]{0,4}=[ ]{0,4}b?(?=[\"'])", "secret",
             ("secret", r"(?:'(?P<single>(?:[^'\\\n]|\\.){8,512}+)'|\"(?P<double>(?:[^\"\\\n]|\\.){8,512}+)\")",
              is_quoted_password)),
    *_behind(r"client-key-data[\"']?:[ ]{0,4}[\"']?", "key",
             ("private_key", r"(?P<text>[A-Za-z0-9+/]{40,}+=*+)", is_token)),
    *_behind(r"private-lines:[ ]?[0-9]{1,4}(?=[\s\\])", "priv",
             ("private_key", r"(?P<text>(?:(?:\\[nr]|[\s>]){1,32}+[A-Za-z0-9+/=]{20,}+)++"
              r"(?:(?:\\[nr]|\s){1,8}+[A-Za-z0-9+/=]{1,19}+(?![A-Za-z0-9:-]))?)", is_token)),
    *_behind(r"splunk[ _a-z-]{0,24}(?:token|key)|splunk[ _-]?hec|authorization[\"']?: {0,2}[\"']?splunk", "splunk",
             ("splunk_token", rf"(?:\\?[\"'])?[ ]{{0,2}}(?:[:=]|is|->)?[ ]{{0,2}}\\?[\"']?(?P<text>{_UUID})",
              is_token)),
    *_behind(r"[?&](?:x-amz-signature|x-amz-security-token|x-goog-signature|signature)=", "signature=,token=",
             ("signed_url", r"(?P<text>[A-Za-z0-9%+/_.~-]{24,}+=*+)", is_token)),
    *_behind(r"(?<![a-z0-9])(?=00d[a-z0-9]{12,15}!)", "00d",
             ("salesforce_token", r"(?P<text>[A-Za-z0-9]{15,18}![A-Za-z0-9._]{60,}+)", is_token)),
    *_behind(r"[;\"'](?:pwd|password)[ ]?=[ ]?", "pwd,password",
             ("password", r"(?P<text>[^\s;\"']{4,256}+)", is_assigned)),
    *_behind(r"--(?:password|passwd|pass|pw|passphrase)[ =]|sshpass -p ?", "--p,sshpass",
             ("password", rf"(?:{_SINGLE}|{_DOUBLE}|(?P<word>[^\s\"'-][^\s\"']{{3,256}}+))", is_assigned)),
    *_behind(r"(?<![\w.-])(?:mysql(?:dump|admin|import|show|check|pump)?|mariadb(?:-dump|-admin)?)(?:\.exe)?(?=[ ])",
             " -p",
             ("password", rf"{_ARGUMENTS}[ ]-p{_NO_PORT}{_ARGUMENT}", is_assigned)),
    *_behind(r"(?<![\w.-])(?:mongo(?:sh|dump|restore|export|import)?|(?:docker|podman|az|oc) login)(?=[ ])", " -p",
             ("password", rf"{_ARGUMENTS}[ ]-p[ ]?{_NO_PORT}(?![./~]){_ARGUMENT}", is_assigned)),
    *_behind(r"(?<![\w.-])redis-cli(?=[ ])", "redis-cli",
             ("password", rf"{_ARGUMENTS}[ ]-a[ ]{_ARGUMENT}", is_assigned)),
    *_behind(r"--(?:[a-z]{1,12}-)?(?:token|api-?key|secret(?:-key)?|credential)[ =][\"']?", "--",
             ("secret", r"(?P<word>[^\s\"'-][^\s\"']{7,512}+)", is_random)),
    *_behind(r"-u |--user[ =]", "-u ,--user",
             ("password", r"[\"']?[^\s:\"'$<{]{1,64}:(?!:)(?P<word>[^\s\"']{4,256}+)", is_url_password)),
    *_behind("://", "://",
             ("url_token", r"(?P<text>[A-Za-z0-9_.~%-]{20,256}+)@(?=[A-Za-z0-9\[])", is_random),
             ("url_password", r"[^\s/:@\"'<>`]{0,128}+:(?P<text>[^\s/\"'<>`]{1,256})@(?=[A-Za-z0-9\[_{$-])",
              is_url_password)),
    *_behind("authorization", "authorization",
             ("authorization", r"(?i)(?:\\?[\"'`])?\]?[ ]{0,4}[:=,][ ]{0,4}\\?[\"'`]?"
              r"(?:bearer|basic|token|apikey|api-key|key|ssws|sso-key|digest|negotiate)[ :=]{1,3}"
              r"(?P<text>[A-Za-z0-9._~+/=:-]{8,4096}+)", is_assigned)),
    *_behind(r"(?<![a-z0-9])_?auth", "auth",
             ("authorization", r"(?:\\?[\"'])?[ \t]{0,4}[:=][ \t]{0,4}\\?[\"']?"
              r"(?P<text>[A-Za-z0-9+/]{8,1024}+={0,2})", is_basic_login)),
    *_behind(_SESSION, "cookie",
             ("session_cookie", rf"=\\?[\"']?{_COOKIE}", is_random),
             ("session_cookie", rf"\\?[\"'][ ]{{0,2}}(?::|=>|,|\]?[ ]?=)[ ]{{0,2}}\\?[\"']"
              rf"(?![0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-){_COOKIE}", is_random)),
    *_behind(_SEED, "phrase,mnemonic",
             ("seed_phrase", rf"(?:[ ]\([^()\n]{{1,40}}\))?(?:{_SEPARATOR}|{_ABOUT}{_IS})\s{{0,4}}\\?[\"'`“]?"
              rf"(?P<text>{SEED_WORDS})", is_seed_phrase)),
    *_behind(r"bearer[ ]{1,3}", "bearer", ("bearer_token", r"(?P<text>[A-Za-z0-9._~+/=-]{20,4096}+)", is_random)),
    *_behind("otpauth://", "otpauth",
             ("otp_seed", r"(?i)[^\s\"']{0,200}?[?&]secret=(?P<text>[A-Z2-7]{16,128}+)", is_assigned)),
    *_behind(_SECRET, "key,token,secret,credential",
             ("secret", rf"{_ENDING}{_SEPARATOR}(?:{_QUOTED}|{_RANDOM})", is_random),
             ("secret", rf"{_ABOUT}{_IS}[\"'`]?{_RANDOM}", is_random),
             ("secret", _SETTING + r"[\"']?(?P<env>[^\s\"']{12,4096}+)", is_random)),
    *_behind(r"(?:priv(?:ate)?|secret|wallet)[ _-]?key", "priv,t key",
             ("private_key", rf"{_KEY_ABOUT}(?<![0-9A-Za-z])(?P<text>(?:0x)?[0-9a-fA-F]{{64}})(?![0-9A-Za-z])",
              is_random)),
    *_behind(r"(?<=[a-z0-9]_)(?:key|auth|pat|creds?)", "_key,_auth,_pat,_cred",
             ("secret", _SETTING + r"[\"']?(?P<env>[^\s\"']{12,4096}+)", is_random)),
    *_behind("cohere|mistral", "cohere,mistral",
             ("secret", r"[^\n]{0,40}?[\"'(=: ](?=[A-Za-z0-9]{0,39}[a-z])(?=[A-Za-z0-9]{0,39}[A-Z])"
              r"(?P<text>[A-Za-z0-9]{32,40})(?![A-Za-z0-9])", is_random)),
    *_behind(r"[?&][a-z0-9_.-]{0,24}(?:token|key|secret|sig|auth|jwt)=", "token=,key=,secret=,sig=,auth=,jwt=",
             ("url_token", r"(?P<text>[A-Za-z0-9%+/_.~-]{16,4096}+=*+)", is_random)),
)  # fmt: skip

#: The name of a field that holds a secret, for documents in which name and value lie apart.
PASSWORD_FIELD = re.compile(rf"(?i)(?:{_PASSWORD}){_ENDING}\Z")
SECRET_FIELD = re.compile(rf"(?i)(?:{_SECRET}){_ENDING}\Z")
LOGIN_FIELD = re.compile(r"(?i)_?auth\Z")
SEED_FIELD = re.compile(rf"(?i)(?:{_SEED})\Z")
COOKIE_FIELD = re.compile(r"(?i)(?:set-)?cookies?\Z")
SESSION_VALUE = re.compile(rf"(?i:{_SESSION})={_COOKIE}")
SEED_VALUE = re.compile(rf"\s{{0,8}}{SEED_WORDS}\s{{0,8}}\Z")

#: Cards are written in fours, or four-six-five, or without a gap.
CARD_HINT = re.compile(r"[2-6]\d{3}[ -]?\d{4}")
_CARD = re.compile(
    r"(?<![\w.,+-])(?<![0-9A-F]{4} )"
    r"(?:[2-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\w-])(?![.,]\d)",
    re.ASCII,
)
_BRANDS = re.compile(
    r"4|5[1-5]|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)|3[47]|35(?:2[89]|[3-8]\d)|6(?:011|5|4[4-9]|2)"
)


def cards(text: str) -> Iterator[tuple[int, int]]:
    for match in _CARD.finditer(text):
        digits = "".join(c for c in match[0] if c.isdigit())
        if _BRANDS.match(digits) and luhn(digits):
            yield match.span()


def luhn(digits: str) -> bool:
    total = 0
    for i, digit in enumerate(reversed(digits)):
        n = int(digit) << (i & 1)
        total += n - 9 if n > 9 else n
    return total % 10 == 0


_ARMOUR = re.compile(r"-----(BEGIN|END) ([A-Z0-9 ]{0,40})-----")
_BODY = re.compile(  # lines without a space in them, the last one perhaps short
    r"(?:(?:\\[nr]|[\s>]){0,32}+[A-Za-z0-9+/=]{20,}+)*+"
    r"(?:(?:\\[nr]|[ \t]{0,16}\n[ \t]{0,16})[A-Za-z0-9+/=]{4,19}+(?=[ \t]{0,16}(?:\n|\Z|\\[nr])))?"
)
_MIN_BODY, _MIN_CLOSED = 40, 12


def private_keys(text: str) -> Iterator[tuple[int, int]]:
    """From BEGIN to its END; where that is missing, as far as it still looks like a key."""
    edges = list(_ARMOUR.finditer(text))
    for i, edge in enumerate(edges):
        if edge[1] != "BEGIN" or "PRIVATE KEY" not in edge[2]:
            continue
        following = edges[i + 1] if i + 1 < len(edges) else None
        if following is not None and following[1] == "END":
            start, end = edge.end(), following.start()
            if _key_chars(text[start:end]) >= _MIN_CLOSED:
                yield edge.start(), following.end()
        else:
            body = _BODY.match(text, edge.end())
            if body is not None and _key_chars(body[0]) >= _MIN_BODY:
                yield edge.start(), body.end()


def _key_chars(body: str) -> int:
    return sum(c.isascii() and (c.isalnum() or c in "+/=") for c in body)
