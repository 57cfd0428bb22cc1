from __future__ import annotations

import pytest

from commonplace.wire.errors import Unavailable
from commonplace.wire.model_endpoint import ModelEndpoint
from commonplace.wire.shown_urls import shown_parameter_name, shown_url, shown_variable

KNOWN = ("model", "key", "calls")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("llm://h/v1?model=a/b:c&key=OPENAI_API_KEY&calls=5", "llm://h/v1?model=a/b:c&key=OPENAI_API_KEY&calls=5"),
        ("llm://[::1]:80/v1?model=x", "llm://[::1]:80/v1?model=x"),
        ("llm://u:pw@h/v1?model=x", "llm://…@h/v1?model=x"),
        ("llm://u:pw/v1?model=x", "llm://u:…/v1?model=x"),
        ("llm:u:pw/v1?model=x", "llm:u:…/v1?model=x"),
        ("llm://h/v1?model=x&key=sk-proj-1", "llm://h/v1?model=x&key=…"),
        ("llm://h/v1?model=x&key=sk_live", "llm://h/v1?model=x&key=…"),
        ("llm://h/v1?model=x&colour=blue&token=ABC", "llm://h/v1?model=x&colour=…&token=…"),
        ("llm://h/v1?model=x&sk-proj-1", "llm://h/v1?model=x&…"),
        ("llm://h/v1?model=x;key=sk", "llm://h/v1?model=…"),
        ("llm://h:80/v1?model=a@b&key=sk", "llm://…@b…"),
        ("llm://h/v1?model=x#sk", "llm://h/v1?model=…"),
        ("llm://h/v1#sk", "llm://h/v1…"),
        ("callable:package.module?dimension=5", "callable:package.module?dimension=…"),
        ("auto", "auto"),
    ],
)
def test_only_what_is_known_is_shown_of_an_endpoint(url: str, shown: str) -> None:
    assert shown_url(url, KNOWN) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://h:5432/m?user=alice@corp&password=abc", "postgresql://…@corp&password=…"),
        (
            "postgresql://h/m?passwd=abc&pwd=d&sslpassword=e&pool=2",
            "postgresql://h/m?passwd=…&pwd=…&sslpassword=…&pool=2",
        ),
        ("memorywire+https://h?token_env=MY_TOKEN", "memorywire+https://h?token_env=MY_TOKEN"),
        ("memorywire+https://h?token_env=cp_abc", "memorywire+https://h?token_env=…"),
        ("postgresql://one:1,two:2,[::1]:3/m", "postgresql://one:1,two:2,[::1]:3/m"),
        ("postgresql://alice:secret/m", "postgresql://alice:…/m"),
        ("sqlite:///srv/a:b/m.db", "sqlite:///srv/a:b/m.db"),
    ],
)
def test_nothing_secret_is_shown_of_a_store(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_what_is_no_name_is_not_quoted() -> None:
    assert [shown_variable(each) for each in ("OPENAI_API_KEY", "_X1", "sk_live", "sk-1", "", "1A")] == [
        *("OPENAI_API_KEY", "_X1"),
        *"…" * 4,
    ]
    assert shown_parameter_name("colour", "llm://h?colour=1") == "'colour'"
    assert shown_parameter_name("sk-proj-1", "llm://h?sk-proj-1") == "something"
    assert shown_parameter_name("pass", "llm://u:1?pass=x@h") == "something"


def test_a_key_in_place_of_its_variables_name_is_not_quoted() -> None:
    for named, quoted in (("NOWHERE_SET", "NOWHERE_SET"), ("sk_live_1", "…")):
        with pytest.raises(Unavailable) as refused:
            ModelEndpoint("http://127.0.0.1:1", "the judge", named, 1).post({}, 1.0)
        assert refused.value.message == f"the judge: the environment variable {quoted}, which `key` names, is not set"


@pytest.mark.parametrize("url", ["sqlite://:memory:", "sqlite-vec://:memory:"])
def test_a_store_in_memory_is_shown_as_it_is_called(url: str) -> None:
    assert shown_url(url) == url
