"""What is said where a program that tests use is missing and cannot be installed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import system_packages
from system_packages import NotInstalled, find_program, require_program


def test_where_there_is_none_and_no_way_to_get_it_that_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert find_program("chromium", "google-chrome") is None
    with pytest.raises(NotInstalled, match="there is no chromium here, and no apt-get to install it with"):
        require_program("chromium", "google-chrome")


def test_no_server_is_started_on_somebodys_machine(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(system_packages, "_SERVICE_MANAGER", tmp_path)
    with pytest.raises(NotInstalled, match="installing it would start it"):
        require_program("nginx", serves=True)


@pytest.mark.process
def test_what_cannot_be_installed_is_named_with_the_reason(monkeypatch: Any, tmp_path: Path) -> None:
    refusing = tmp_path / "apt-get"
    refusing.write_text("#!/bin/sh\necho first >&2\necho 'are you root?' >&2\nexit 100\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system_packages, "_LOCK", tmp_path / "lock")
    with pytest.raises(NotInstalled, match=r"fish could not be installed with `apt-get .* fish`: are you root\?"):
        require_program("fish")


@pytest.mark.process
def test_what_was_not_there_is_there_afterwards(monkeypatch: Any, tmp_path: Path) -> None:
    """The second try, once the lists are up to date."""
    making = tmp_path / "apt-get"
    making.write_text(
        "#!/bin/sh\n"
        f"if [ $1 = update ]; then : > {tmp_path}/updated; exit; fi\n"
        f"[ -e {tmp_path}/updated ] || exit 100\n"
        f"ln -s /bin/sh {tmp_path}/fish\n"
    )
    making.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(system_packages, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(shutil, "which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None)
    assert require_program("fish") == tmp_path / "fish"
