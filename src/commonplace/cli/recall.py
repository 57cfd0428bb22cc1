"""`commonplace recall`."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, argument, option
from commonplace.cli.support.options import TYPES
from commonplace.cli.support.output import Document, body, minute, moment, remarks, store_problems
from commonplace.cli.support.tables import Table

FUSIONS = ("rrf", "max", "weighted")

commands = Commands()


@commands.add("recall")
def recall(
    run: Session,
    query: Annotated[list[str], argument("QUERY", "What to look for, in your own words.")],
    k: Annotated[int, option("-k N", "How many to find, 1 to 1000.")] = 5,
    user: options.User = None,
    types: Annotated[
        list[str] | None, option("--types TYPE", "Only these types; repeat it, or give them comma-separated.", *TYPES)
    ] = None,
    filter: options.Filter = None,
    where: options.Where = None,
    fresher_than_days: Annotated[
        int | None, option("--fresher-than-days N", "Only what was written in the last N days.")
    ] = None,
    as_of: options.AsOf = None,
    min_score: Annotated[
        float | None, option("--min-score 0–1", "Only what is at least this relevant; 0 is all.")
    ] = None,
    judge: Annotated[
        str | None, option("--judge WHEN", "Read the best with a judge: auto (the default), off or always.")
    ] = None,
    fusion: Annotated[
        str | None,
        option("--fusion HOW", "How lists of several stores become one: rrf (the default), max or weighted.", *FUSIONS),
    ] = None,
    quorum_k: Annotated[
        int | None, option("--quorum-k N", "Only what so many stores have found, of which the first is one.")
    ] = None,
    hops: Annotated[
        int | None, option("--hops N", "Raise what is tied to other finds, up to N steps away, 1 to 3.")
    ] = None,
    include_shared: Annotated[bool, option("--include-shared", "Look in the shared space, too.")] = False,
    explain: Annotated[bool, option("--explain", "Show why each one was found.")] = False,
) -> Answer:
    """Find the memories that answer a question, best first.

    \b
    Example:
      commonplace recall "what should I not cook for Alice?" -k 3
      commonplace recall deployment --where project=atlas --fresher-than-days 30
      commonplace recall "door code" --as-of 2026-03-01 --json
    """
    wanted: dict[str, Any] = {"user_id": user, "filter": values.conditions(filter, where), "min_score": min_score}
    wanted["types"] = [type.strip() for given in types for type in given.split(",")] if types else None
    wanted |= {"fresher_than_days": fresher_than_days, "as_of": values.past(as_of, "--as-of")}
    wanted |= {"judge": judge, "fusion": fusion, "quorum_k": quorum_k, "hops": hops}
    wanted |= {"include_shared": include_shared or None, "explain": explain or None}
    response = run(run.memory.recall(" ".join(query), k=k, **wanted))
    from commonplace.wire.models import dump

    document = dump(response)
    note = document.get("note", "")
    for name, flag in (("min_score", "--min-score"), ("quorum_k", "--quorum-k")):  # the engine has the wire's names
        note = note.replace(name, flag)
    notes = [note, *run.warnings, *store_problems(document)]
    return Answer(document, lambda: _show(document, explain), notes, nothing=not response.results)


def _show(document: Document, explain: bool) -> None:
    results = document["results"]
    # A calibrated relevance says something by itself; the score of fusion only orders.
    calibrated = all("relevance" in hit for hit in results)
    scores = [h["relevance"] * h.get("demotion", 1.0) if calibrated else h["score"] for h in results]
    ranked = sorted(zip(scores, results, strict=True), key=lambda pair: -pair[0])
    if results:
        Table(
            ["memory", "type", "score", "written"],
            [[(body(h), h["id"]), h["type"], float(score), minute(h.get("created_at"))] for score, h in ranked],
            ([h["id"], f"{score:.4f}", h["type"], moment(h.get("created_at")), body(h)] for score, h in ranked),
        ).print()
    elif not document.get("note"):
        remarks(["nothing found"])
    if explain:
        from commonplace.cli.support.explanation import show_explanation

        show_explanation(document)
