"""Which stores are meant where flags, variables and the file of a data folder name some. Nothing is opened."""

from __future__ import annotations

import os
from pathlib import Path

from commonplace.stores.same_store import is_same
from commonplace.stores.urls import FILE_SCHEMES, is_ephemeral, parse_store_url, quote_path


def select_stores(
    folder: Path,
    embedded: str,
    *,
    is_named: bool,
    flags: tuple[str, ...],
    variables: tuple[str, ...],
    file: tuple[str, ...],
) -> tuple[tuple[str, ...], bool]:
    """The URLs of the stores, and whether those of the variables are used. Whoever names the folder itself
    (`is_named`) means its store, and not one elsewhere that a variable names for every folder."""
    if flags:
        return flags, True
    own = tuple(_resolve_in(folder, url) for url in file)
    if not variables:
        return own, True
    is_used = not is_named or is_same(variables[0], own[0] if own else embedded, folder)
    return (variables if is_used else own), is_used


def _resolve_in(folder: Path, url: str) -> str:
    """A path in the file of a folder begins at that folder, wherever a command is run."""
    scheme, _, place = url.partition("://")
    if scheme not in FILE_SCHEMES or not place or place[0] in "/~" or is_ephemeral(parse_store_url(url).url):
        return url
    return f"{scheme}://{os.path.normpath(Path(quote_path(str(folder.absolute())), place))}"
