"""A part of the graph as a picture: every name once, nothing on top of anything it belongs beside."""

from __future__ import annotations

from commonplace.engine import Triple
from commonplace.ui.graph_drawing import draw


def triple(subject: str, predicate: str, object: str) -> Triple:
    return Triple(f"{subject}{predicate}{object}", "a", subject, predicate, object, 0)


def test_each_name_stands_at_the_ring_of_its_distance() -> None:
    drawing = draw(
        "Bob", [triple("Bob", "knows", "Alice"), triple("Carol", "knows", "Bob"), triple("Alice", "has", "cat")]
    )
    assert {node.name: node.ring for node in drawing.nodes} == {"Bob": 0, "Alice": 1, "Carol": 1, "cat": 2}
    assert len(drawing.edges) == 3
    assert len({(node.x, node.y) for node in drawing.nodes}) == 4


def test_what_is_alone_what_points_at_itself_and_what_is_far() -> None:
    assert [node.name for node in draw("Bob", []).nodes] == ["Bob"]
    assert draw("Bob", [triple("Bob", "is", "Bob")]).edges == []
    far = [triple("a", "to", "b"), triple("b", "to", "c"), triple("c", "to", "d")]
    assert [node.name for node in draw("a", far).nodes] == ["a", "b", "c"]


def test_long_names_are_cut_and_everything_is_inside_the_view() -> None:
    drawing = draw("x" * 500, [triple("x" * 500, "y" * 500, f"n{i}") for i in range(30)])
    assert max(len(node.label) for node in drawing.nodes) == 20
    left, top, width, height = map(float, drawing.view.split())
    for node in drawing.nodes:
        assert left < node.x - node.width / 2 < node.x + node.width / 2 < left + width
        assert top < node.y < top + height
