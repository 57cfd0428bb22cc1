"""Which stores are meant where flags, variables and the file of a data folder name some. Nothing is opened."""

from __future__ import annotations

from pathlib import Path

from commonplace.stores.same_store import is_same
from commonplace.stores.urls import absolute_url


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
    own = tuple(absolute_url(url, folder) for url in file)  # a path in the file of a folder begins there
    if not variables:
        return own, True
    is_used = not is_named or is_same(variables[0], own[0] if own else embedded, folder)
    return (variables if is_used else own), is_used
