from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from commonplace import config
from commonplace.config import Config, MrpConfig, RedactionConfig, load
from commonplace.wire.errors import ValidationError


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATA", "AGENT", "EMBEDDER", "STORE", "STORES", "INDEX_MB"):
        monkeypatch.delenv(f"COMMONPLACE_{name}", raising=False)


def test_flags_then_environment_then_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.load(data=tmp_path).agent == "default"
    (tmp_path / "commonplace.toml").write_text('agent = "file"\nindex_mb = 64\n')
    assert config.load(data=tmp_path).agent == "file"
    monkeypatch.setenv("COMMONPLACE_AGENT", "environment")
    assert config.load(data=tmp_path).agent == "environment"
    assert config.load(data=tmp_path, agent="flag").agent == "flag"
    assert config.load(data=tmp_path).index_mb == 64


OWN, ENV, FILE, FLAG = "sqlite://{}/commonplace.db", "sqlite:///env.db", "sqlite:///file.db", "sqlite:///flag.db"


@pytest.mark.parametrize("by_flag", [True, False], ids=["--data", "COMMONPLACE_DATA"])
@pytest.mark.parametrize(
    ("flag", "environment", "file", "used", "used_beside_data"),
    [
        ((), {}, "", OWN, OWN),
        ((), {"STORE": ENV}, "", ENV, OWN),
        ((), {"STORES": f"{ENV} mem0://x"}, "", f"{ENV} mem0://x", OWN),
        ((), {"STORE": "sqlite:///old.db", "STORES": ENV}, "", ENV, OWN),
        ((), {}, f"store = '{FILE}'", FILE, FILE),
        ((), {}, f"stores = ['{FILE}', 'mem0://x']", f"{FILE} mem0://x", f"{FILE} mem0://x"),
        ((), {"STORE": ENV}, f"store = '{FILE}'", ENV, FILE),
        ((), {"STORE": ENV}, f"stores = ['{FILE}', 'mem0://x']", ENV, f"{FILE} mem0://x"),
        ((), {"STORES": ENV}, f"stores = ['{FILE}', 'mem0://x']", ENV, f"{FILE} mem0://x"),
        ((FLAG,), {"STORE": ENV}, f"stores = ['{FILE}', 'mem0://x']", FLAG, FLAG),
        ((FLAG, "mem0://y"), {"STORES": f"{ENV} mem0://x"}, f"store = '{FILE}'", f"{FLAG} mem0://y", f"{FLAG} mem0://y"),
        # The variable says where the copies of that very folder's store are: nothing is written anywhere else.
        ((), {"STORES": f"{OWN} mem0://x"}, "", f"{OWN} mem0://x", f"{OWN} mem0://x"),
        ((), {"STORES": f"{FILE} mem0://x"}, f"store = '{FILE}'", f"{FILE} mem0://x", f"{FILE} mem0://x"),
    ],
)  # fmt: skip
def test_which_stores_are_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: tuple[str, ...], environment: dict[str, str], file: str,
    used: str, used_beside_data: str, by_flag: bool,
) -> None:  # fmt: skip
    """Flags, then variables, then the file; and whoever names a folder by a flag means the store of that folder."""
    (tmp_path / "commonplace.toml").write_text(file)
    for name, value in environment.items():
        monkeypatch.setenv(f"COMMONPLACE_{name}", value.format(tmp_path))
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "elsewhere" if by_flag else tmp_path))
    found = config.load(data=tmp_path if by_flag else None, stores=flag or None)
    assert found.data == tmp_path
    wanted = used_beside_data if by_flag else used
    assert [found.store_url, *found.replica_urls] == wanted.format(tmp_path).split()
    unused = by_flag and used != used_beside_data
    assert len(found.notes) == unused
    if unused:
        variable = "COMMONPLACE_STORES" if "STORES" in environment else "COMMONPLACE_STORE"
        assert found.uses_store_variables is False
        assert f"{variable} is not used" in found.notes[0]
        assert str(tmp_path) in found.notes[0]


@pytest.mark.parametrize("variable", ["COMMONPLACE_STORE", "COMMONPLACE_STORES"])
@pytest.mark.parametrize("between", [" ", ","])
def test_two_stores_are_not_taken_for_one_file(monkeypatch: pytest.MonkeyPatch, variable: str, between: str) -> None:
    monkeypatch.setenv(variable, f"sqlite://./a.db{between}sqlite://./b.db")
    if (variable, between) == ("COMMONPLACE_STORES", " "):
        assert config.load().stores == ("sqlite://./a.db", "sqlite://./b.db")
        return
    with pytest.raises(ValidationError, match="more than one store: separate them by spaces"):
        config.load()


def test_a_note_quotes_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("postgresql://alice:geheim@h/m", "no url: geheim", "sqlite://x?geheim=1"):
        monkeypatch.setenv("COMMONPLACE_STORES", url)
        (said,) = config.load(data=tmp_path).notes
        assert "geheim" not in said


@pytest.mark.parametrize("scheme", ["sqlite", "sqlite-vec"])
def test_a_path_in_the_file_is_the_same_wherever_a_command_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    given = [f"{scheme}://./a.db", f"{scheme}://sub/b.db?name=b", f"{scheme}://~/c.db", f"{scheme}:///d.db", "mem0://x"]
    data = Path("data")
    data.mkdir()
    (data / "commonplace.toml").write_text(f"stores = {given}")
    found = config.load(data=data)
    here = tmp_path / "data"
    assert found.store_url == f"{scheme}://{here}/a.db"
    assert found.replica_urls == (f"{scheme}://{here}/sub/b.db?name=b", *given[2:])
    monkeypatch.setenv("COMMONPLACE_STORES", f"{scheme}://./a.db")
    monkeypatch.setenv("COMMONPLACE_DATA", "data")
    assert config.load().store_url == f"{scheme}://./a.db"  # as the shell's own paths: where the command is run


def test_the_data_folder_comes_from_the_environment_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_DATA", str(tmp_path / "here"))
    assert config.load().data == tmp_path / "here"
    assert config.load().store_url.endswith("/here/commonplace.db")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('colour = "red"', "unknown setting 'colour'"),
        ("agent = ", "not valid TOML"),
        ('index_mb = "many"', "whole number"),
        ("index_mb = 0", "at least 1"),
        ("[routing]\ntimeout = 601", "timeout must be at most 600"),
        ("agent = 3", "agent must be text"),
        ('agent = ""', "agent names no agent; give one, or leave it out"),
        ("stores = [3]", "stores must be a list of names"),
        ("store = 3", "store must be text"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "commonplace.toml").write_text(text)
    with pytest.raises(ValidationError, match=says) as refused:
        config.load(data=tmp_path)
    assert f"{tmp_path / 'commonplace.toml'}" in refused.value.message
    assert refused.value.message.count("commonplace.toml") == 1


def test_a_mistake_in_a_variable_names_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_INDEX_MB", "many")
    with pytest.raises(ValidationError, match=r"^COMMONPLACE_INDEX_MB: index_mb must be"):
        config.load(data=tmp_path)
    with pytest.raises(ValidationError, match=r"^index_mb must be"):
        config.load(data=tmp_path, index_mb="much")


@pytest.mark.parametrize(
    ("url", "ascii"),
    [
        ("https://пример.рф", "https://xn--e1afmkfd.xn--p1ai"),
        ("https://ПРИМЕР.рф:8443/memory", "https://xn--e1afmkfd.xn--p1ai:8443/memory"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("https://xn--e1afmkfd.xn--p1ai", "https://xn--e1afmkfd.xn--p1ai"),
        ("https://Memory.example.org", "https://Memory.example.org"),
        ("http://[::1]:8420", "http://[::1]:8420"),
    ],
)
def test_the_host_of_an_address_is_spelled_as_browsers_ask_for_it(tmp_path: Path, url: str, ascii: str) -> None:
    assert config.load(data=tmp_path, public_url=url).public_url == ascii


@pytest.mark.parametrize("host", ["straße.example", "λόγος.example", "a..ü", "ü" * 64, "a\u200dü"])
def test_a_host_that_browsers_may_spell_otherwise_is_to_be_written_as_they_do(tmp_path: Path, host: str) -> None:
    with pytest.raises(ValidationError, match="write the host of public_url as browsers ask for it"):
        config.load(data=tmp_path, public_url=f"https://{host}")


_ODD = (
    "", "true", "false", "0", "-1", "1.5", "nan", "inf", "-inf", "9" * 40, "1e400", '""', '" "', '"x"', '"\\u0000"',
    "[]", "[1]", "[[]]", '["x", 1]', "{}", "{a = 1}", "2026-01-01", "12:00:00", '"nan"', '"99999999999999999999"',
)  # fmt: skip
_KEYS = [each.name for each in fields(Config) if each.name not in ("data", "redaction", "mrp")]
_TABLES: dict[str, Any] = {"redaction": RedactionConfig, "mrp": MrpConfig}
_TABLE_KEYS = [f"{name}.{each.name}" for name, kind in _TABLES.items() for each in fields(kind)]


@pytest.mark.parametrize("key", [*_KEYS, *_TABLE_KEYS, "redaction", "mrp", "data", "unknown"])
def test_whatever_a_file_says_is_a_setting_or_a_sentence(tmp_path: Path, key: str) -> None:
    for odd in _ODD:
        (tmp_path / "commonplace.toml").write_text(f"{key} = {odd}\n", "utf-8")
        with suppress(ValidationError):
            _check_types(load(data=tmp_path))


@pytest.mark.parametrize("key", [*_KEYS, *_TABLE_KEYS])
def test_whatever_the_environment_says_is_a_setting_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    for odd in _ODD:
        monkeypatch.setenv(f"COMMONPLACE_{key.replace('.', '_').upper()}", odd.strip('"').replace("\\u0000", "?"))
        with suppress(ValidationError):
            _check_types(load(data=tmp_path))


def _check_types(found: Any) -> None:
    for each in fields(found):
        value, default = getattr(found, each.name), each.default
        if is_dataclass(value):
            _check_types(value)
        elif default is None:
            assert value is None or isinstance(value, str), each.name
        elif isinstance(default, bool | int | str | tuple):
            assert type(value) is type(default), (each.name, value)
            if isinstance(value, int):
                assert 0 <= value < 2**53, (each.name, value)
            if isinstance(value, tuple):
                assert all(isinstance(item, str) and item for item in value), (each.name, value)
