"""Rows that were read, ranked exactly and made candidates: for any store that keeps rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from commonplace.stores import exact_search
from commonplace.stores.base import Candidate, Search
from commonplace.stores.row_format import to_memory
from commonplace.stores.text import matched_terms, packed_terms
from commonplace.stores.token_vectors import Codes, QuestionTokens, best_late_scores
from commonplace.stores.vector_cells import tokens_of

#: The packed tokens of the rows at these places: only of the best are they looked at.
TokensOf = Callable[[Sequence[int]], Sequence[bytes | None]]


def rank_rows(
    rows: Sequence[Sequence[Any]],
    derived: Sequence[exact_search.Row],
    search: Search,
    terms: Sequence[int],
    tokens: TokensOf,
    second: exact_search.Scores | None = None,
    statistics: exact_search.Statistics | None = None,
) -> list[Candidate]:
    """The best of `rows` (see `row_format.to_memory`), whose words and vectors are in `derived`.

    Only the best are made memories: of an agent with many, that is what takes the time.
    """
    late = None
    if (question := search.tokens) is not None:

        def scores(places: Sequence[int]) -> list[float | None]:
            packed = tokens(places)
            kept = [tokens_of(held, derived[place][1]) for place, held in zip(places, packed, strict=True)]
            return late_scores(question, kept)

        late = exact_search.LateLeg(search.depth, scores)
    ranked = exact_search.rank(derived, terms, search.vector, search.limit, late, second, statistics)
    wanted = packed_terms(terms)
    return [
        Candidate(
            to_memory(rows[row]),
            dense,
            keyword,
            matched_terms(derived[row][0], wanted),
            by_tokens,
            exact_search.given(second, row),
        )
        for row, dense, keyword, by_tokens in ranked
    ]


def late_scores(question: QuestionTokens, memories: Sequence[Sequence[Codes]]) -> list[float | None]:
    """Of memories, each with the tokens of its parts."""
    return best_late_scores(question, [part for parts in memories for part in parts], [*map(len, memories)])
