from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from commonplace import plugins
from commonplace.stores.base import StoreSettings
from commonplace.stores.documents import to_document, to_memory
from commonplace.stores.same_store import is_same
from commonplace.stores.sqlite.store import database_path
from commonplace.stores.urls import (
    DATABASE_SCHEMES,
    FILE_SCHEMES,
    database_file,
    file_url,
    folder_of,
    parse_store_url,
    split_options,
    store_key,
)
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import OperatorActionRequired, Unavailable, ValidationError
from commonplace.wire.record import Memory
from commonplace.wire.shown_urls import shown_url


def test_a_url_says_how_its_store_is_used() -> None:
    url = parse_store_url("mem0://default?name=m&timeout=0.5&weight=2&types=semantic,episodic&own=1")
    assert (url.url, url.name, url.timeout, url.weight) == ("mem0://default?own=1", "m", 0.5, 2.0)
    assert url.types == {"semantic", "episodic"}
    assert parse_store_url("sqlite://./m.db").url == "sqlite://./m.db"


def test_no_secret_of_a_url_is_shown() -> None:
    shown = parse_store_url("x://user:pa55@host/db?token=abc&api_key=def&plain=1").shown
    assert "pa55" not in shown
    assert "abc" not in shown
    assert "def" not in shown
    assert shown.startswith("x://…@host/db?token=…")


def test_a_store_is_told_from_others_without_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = ["sqlite://one.db", "sqlite://two.db", "postgresql://alice:geheim@host", "postgresql://bob:geheim@host"]
    keys = [store_key(url) for url in urls]
    assert len(set(keys)) == len(urls)
    assert "geheim" not in "".join(keys)
    assert [store_key(url) for url in urls] == keys
    assert [store_key(url) for url in ("memory://", "sqlite://:memory:")] == ["", ""]
    monkeypatch.chdir(tmp_path)
    assert [store_key(url) == key for url, key in zip(urls, keys, strict=True)] == [False, False, True, True]


@pytest.mark.parametrize(("url", "package", "extra"), [
    ("mem0://default", "mem0ai", "mem0"), ("sqlite-vec://./x.db", "sqlite-vec", "sqlite-vec"),
    ("mem0+postgresql://db.example/m", "mem0ai", "mem0"), ("cognee://default", "cognee", "cognee"),
    ("postgresql://db.example/m", "psycopg", "postgresql")])  # fmt: skip
def test_a_missing_package_is_named_with_what_installs_it(
    url: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OperatorActionRequired) as refused:
        plugins.opener(url)
    assert f"needs the package {package}" in refused.value.message
    assert f"pip install 'commonplace-memory[{extra}]'" in refused.value.message


def test_a_replica_that_is_asked_wrongly_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError, match="there are token_env"):
        plugins.open_replica("memorywire+http://127.0.0.1:9?tokn=x", FakeClock())
    with pytest.raises(OperatorActionRequired, match="NOWHERE_SET"):
        plugins.open_replica("memorywire+http://127.0.0.1:9?token_env=NOWHERE_SET", FakeClock())
    from commonplace.stores.mem0 import open_url

    with pytest.raises(ValidationError, match="needs an embedder"):
        open_url("mem0://default", FakeClock(), StoreSettings(folder=tmp_path))


@pytest.mark.parametrize(("url", "known"), [
    ("sqlite://./m.db?cache=1", "it has none of its own"), ("memory://?cache=1", "it has none of its own"),
    ("memorywire+https://x.example?tokn=1", "there are token_env"), ("sqlite://./m.db?name=a", "it has none"),
])  # fmt: skip
def test_a_setting_that_a_store_does_not_have_is_named_with_those_it_has(url: str, known: str) -> None:
    with pytest.raises(ValidationError, match=known):
        plugins.opener(url)


#: Parts of paths, of settings and of what encodes a question mark.
PARTS = st.sampled_from([*"?%/=&a #@ü", "%3F", "%3f", "%25", "25", "3F", "name=x", ".db"])


@given(st.lists(PARTS, min_size=1, max_size=12).map("".join).map(lambda text: Path("/srv", text.lstrip("/"), "m.db")))
@example(Path("/srv/why?name=x/m.db"))
@example(Path("/srv/why%3F?types=a%253Fb.db"))
def test_the_url_of_a_file_names_that_file_first_and_with_the_settings_of_a_copy(path: Path) -> None:
    for scheme in FILE_SCHEMES:
        url = file_url(scheme, path)
        assert (database_file(url), database_path(url)) == (path, path)
        copy = parse_store_url(f"{url}?name=spare&weight=2")
        assert (database_file(copy.url), copy.name, copy.weight) == (path, "spare", 2.0)
        assert parse_store_url(copy.url) == parse_store_url(url)
        assert is_same(url, f"{url}?name=spare", Path("/srv"))


@given(st.lists(PARTS, min_size=1, max_size=12).map("".join))
def test_a_url_of_a_file_is_the_same_one_as_the_first_store_and_as_a_copy(text: str) -> None:
    """Whatever somebody writes: it is refused in either place, or names one file in both."""
    url = f"sqlite:///srv/{text}"
    try:
        first = database_file(url)
    except ValidationError:
        return
    assert database_file(parse_store_url(url).url) == first


@pytest.mark.parametrize(("url", "file"), [
    ("sqlite:///srv/why?.db", "/srv/why?.db"), ("sqlite:///srv/why?/m.db", "/srv/why?/m.db"),
    ("sqlite:///srv/why?/m=1/m.db", "/srv/why?/m=1/m.db"), ("sqlite:///srv/why%3F.db", "/srv/why?.db"),
    ("sqlite:///srv/100%25.db", "/srv/100%25.db"), ("sqlite:///srv/100%.db", "/srv/100%.db"),
    ("sqlite:///srv/%253F.db", "/srv/%3F.db"), ("sqlite:///srv/%41.db", "/srv/%41.db"),
])  # fmt: skip
def test_a_question_mark_in_a_files_name_is_a_part_of_it_in_every_place(url: str, file: str) -> None:
    assert database_file(url) == database_path(url) == Path(file)
    copy = parse_store_url(f"{url}?name=spare")
    assert (database_file(copy.url), copy.name) == (Path(file), "spare")


def test_a_question_mark_in_a_folders_name_is_a_part_of_it(tmp_path: Path) -> None:
    assert folder_of("/srv/why%3F", None) == Path("/srv/why?")
    assert folder_of("why%3F", tmp_path) == tmp_path / "why?"
    assert split_options("cognee:///srv/why?/m?embeddings=http://h/v1?a=1&model=m") == (
        "cognee:///srv/why?/m", {"embeddings": "http://h/v1?a=1", "model": "m"}
    )  # fmt: skip


def test_a_question_mark_in_a_password_is_refused_and_in_a_setting_of_a_server_is_its_own() -> None:
    url = "letta://h/n?embeddings=http://h/v1?a=1&name=x"
    assert parse_store_url(url).url == "letta://h/n?embeddings=http://h/v1%3Fa%3D1"
    assert split_options(parse_store_url(url).url) == ("letta://h/n", {"embeddings": "http://h/v1?a=1"})


def test_a_question_mark_in_a_path_is_no_setting() -> None:
    assert split_options("sqlite:///srv/why?/m=1/m.db") == ("sqlite:///srv/why?/m=1/m.db", {})
    assert split_options("sqlite:///srv/why?.db") == ("sqlite:///srv/why?.db", {})
    assert split_options("x://a?b=1&c=") == ("x://a", {"b": "1", "c": ""})


@pytest.mark.parametrize(("place", "parent", "folder"), [
    ("default", "/data/mem0", "/data/mem0/default"), ("/srv/mem0", "/data/mem0", "/srv/mem0"),
    ("//srv/mem0", None, "/srv/mem0"), ("default", None, None), ("", "/data/mem0", None),
    ("..", "/data/mem0", None), (".", "/data/mem0", None), ("a/../../b", "/data/mem0", None),
])  # fmt: skip
def test_a_name_is_a_folder_of_the_data_directory_and_leads_nowhere_else(
    place: str, parent: str | None, folder: str | None
) -> None:
    found = folder_of(place, None if parent is None else Path(parent))
    assert found == (None if folder is None else Path(folder))
    address = "http://127.0.0.1:8420/v1"
    assert split_options(f"letta://h/n?embeddings={address}") == ("letta://h/n", {"embeddings": address})


@pytest.mark.parametrize("nonsense", [
    None, {}, "text", {"id": 3}, {"id": "x", "tenant": "t", "agent_id": "a", "type": "dream", "content": "c"},
    {"id": "x", "tenant": "t", "agent_id": "a", "type": "semantic", "content": {"no": "text"}},
    {"id": "x", "tenant": "t", "agent_id": "a", "type": "semantic", "content": "c", "expires_at": "soon"}])  # fmt: skip
def test_what_is_no_memory_is_the_stores_failure(nonsense: Any) -> None:
    with pytest.raises(Unavailable, match="mem0 answered with something that is no memory of ours"):
        to_memory(nonsense, "mem0")


def test_a_memory_survives_as_a_document() -> None:
    memory = Memory("i", "t", "a", "episodic", "words", tags=["x"], metadata={"d": {"e": [1]}}, created_at=5)
    assert to_memory(to_document(memory), "x") == memory
    assert to_memory(to_document(memory, defaults=True), "x") == memory


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://alice:secret@db.example/memories", "postgresql://…@db.example/memories"),
        ("postgresql://alice:p@ss@db.example/memories", "postgresql://…@db.example/memories"),
        ("postgresql://alice:s3?cret@db.example/m?pool=2", "postgresql://…@db.example/m?pool=2"),
        ("postgresql://alice:s3/cr#et@db.example/m", "postgresql://…@db.example/m"),
        ("postgresql://alice:12?a=b@db.example/m", "postgresql://…@db.example/m"),
        ("postgresql:/alice:secret@db.example/m", "…@db.example/m"),
        ("postgresql:alice:secret@db.example/m?x=y://z", "…@db.example/m?x=y://z"),
        (
            "postgresql://db.example/m?user=alice@corp&password=abc",
            "postgresql://db.example/m?user=alice@corp&password=…",
        ),
        (
            "letta://h/n?embeddings=http://bob:secret@models.example/v1",
            "letta://h/n?embeddings=http://…@models.example/v1",
        ),
        ("mem0://x?api_key=abc&token=def", "mem0://x?api_key=…&token=…"),
        ("sqlite:///data/commonplace.db", "sqlite:///data/commonplace.db"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://alice:s3%2Fcr%3Fet@db.example:5432/memories?pool=2",
        "postgresql://alice@one:1,two:2,[::1]:3/memories?user=alice@corp",
        "postgresql:///memories?host=/var/run&user=alice@corp",
        "letta://127.0.0.1:8283/n?embeddings=http://bob:secret@models.example/v1",
        f"postgresql://alice@{','.join(['db.example'] * 99)}/memories",
        "sqlite:///srv/alice@work/why?/m.db",
        "mem0:///srv/alice@work",
    ],
)
def test_a_url_that_can_be_read_is_not_refused_for_its_characters(url: str) -> None:
    split_options(url)
    parse_store_url(url)


_SERVED = ("postgresql", "postgres", "pgvector", "memorywire+http", "memorywire+https", "letta", "letta+https")


@pytest.mark.parametrize("place", ["{}", "{}/x", "alice:secret@{}/x", "one:5432,{}/x", "{}?timeout=3"])
@pytest.mark.parametrize("port", ["0", "65536", "none", "-1", "+1", "５", "1" * 5000])
@pytest.mark.parametrize("host", ["h", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("scheme", _SERVED)
def test_a_port_that_is_none_is_refused_before_anything_is_opened(
    scheme: str, host: str, port: str, place: str
) -> None:
    """A store for copies with such a one was tried again for ever."""
    with pytest.raises(ValidationError) as refused:
        plugins.opener(f"{scheme}://{place.format(f'{host}:{port}')}")
    message = refused.value.message
    assert "secret" not in message
    assert "cannot be read" in message


@pytest.mark.parametrize(
    "place", ["h/x", "h:1/x", "h:65535/x", "[::1]:5432/x", "[::1]/x", "alice:0@h:5432/x", "a:1,b/x", "h:/x"]
)
@pytest.mark.parametrize("scheme", _SERVED)
def test_a_port_that_is_one_is_taken(scheme: str, place: str) -> None:
    if "," in place and scheme not in DATABASE_SCHEMES:
        pytest.skip("several hosts are named of a database alone")
    assert plugins.opener(f"{scheme}://{place}")


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
def test_of_a_user_without_a_home_folder_no_file_is_named(scheme: str) -> None:
    with pytest.raises(ValidationError, match="there is no home folder of that user"):
        database_file(f"{scheme}://~nobody-here/memories.db")
