"""Drawings: well-formed, complete, and nothing in them but what was named."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

from commonplace.engine.procedures import drawing, machine
from commonplace.wire.errors import ValidationError

SVG = "{http://www.w3.org/2000/svg}"


def parsed(**fields: Any) -> machine.StateMachine:
    found = machine.parse(json.dumps({"name": "book", "states": ["end", "note", "state"], **fields}))
    assert found is not None
    return found


BOOK = parsed(
    name='<script>alert("&")</script>',
    initial="end",
    current="note",
    transitions=[
        {"trigger": "go", "source": "end", "dest": "note", "conditions": ["ok"], "unless": "late"},
        {"trigger": "on", "source": "end", "dest": "note"},
        {"trigger": "back", "source": ["note", "state"], "dest": "end"},
        {"trigger": "stay", "source": "note", "dest": "="},
        {"trigger": "stop", "source": "*", "dest": "state"},
        {"trigger": "wait", "source": "*", "dest": None},
    ],
)


def test_mermaid_names_states_of_its_own_so_that_no_word_of_its_grammar_is_one() -> None:
    assert drawing.draw(BOOK, "mermaid").splitlines() == [
        "stateDiagram-v2",
        '    state "end" as s0',
        '    state "note" as s1',
        '    state "state" as s2',
        '    state "any state" as any',
        "    [*] --> s0",
        "    s0 --> s1 : go [ok, not late]",
        "    s0 --> s1 : on",
        "    s1 --> s0 : back",
        "    s2 --> s0 : back",
        "    s1 --> s1 : stay",
        "    any --> s2 : stop",
        "    any --> any : wait",
        "    classDef current font-weight:bold,stroke-width:3px",
        "    class s1 current",
    ]


def test_svg_has_every_state_and_transition_and_no_script() -> None:
    text = drawing.draw(BOOK, "svg")
    root = ElementTree.fromstring(text)
    names = [node.text for node in root.iter(f"{SVG}text") if node.get("class") == "name"]
    labels = [node.text for node in root.iter(f"{SVG}text") if node.get("class") == "label"]
    assert names == ["end", "note", "state", "any state"]
    assert labels == ["go [ok, not late]", "on", "back", "back", "stay", "stop", "wait"]
    assert len(root.findall(f"{SVG}path")) == 7
    assert [g.findtext(f"{SVG}title") for g in root.iter(f"{SVG}g") if g.get("class") == "current"] == ["note"]
    assert root.findtext(f"{SVG}title") == '<script>alert("&")</script>: note'
    assert "<script" not in text
    assert "href" not in text


def test_no_two_states_stand_in_one_place() -> None:
    many = parsed(states=[f"s{i}" for i in range(200)])
    assert len(set(drawing._places(many).values())) == 200
    chain = [{"trigger": "on", "source": f"s{i}", "dest": f"s{i + 1}"} for i in range(9)]
    places = drawing._places(parsed(states=[f"s{i}" for i in range(10)], transitions=chain))
    assert len({x for x, _ in places.values()}) == 10


def test_labels_have_room_between_states_and_stand_before_them() -> None:
    guarded = {"trigger": "chosen", "source": "end", "dest": "note", "conditions": ["a_guard_with_a_very_long_name"]}
    root = ElementTree.fromstring(drawing.svg(parsed(transitions=[guarded])))
    (label,) = [node for node in root.iter(f"{SVG}text") if node.get("class") == "label"]
    boxes = [int(rect.get("x", "")) for rect in root.iter(f"{SVG}rect")]
    half = 3 * len(label.text or "")
    assert boxes[0] + 150 < int(label.get("x", "")) - half < int(label.get("x", "")) + half < boxes[1]
    assert list(root)[-1] is label


def test_what_only_a_step_from_anywhere_leads_to_stands_beside_it() -> None:
    steps = [{"trigger": "go", "source": "end", "dest": "note"}, {"trigger": "stop", "source": "*", "dest": "state"}]
    places = drawing._places(parsed(transitions=steps))
    assert places["*"][1] == places["state"][1], "on one line, so that the arrow runs behind no box"
    assert places["end"][1] == places["note"][1] < places["state"][1]


def test_the_largest_machine_is_drawn() -> None:
    states = [f"s{i}" for i in range(200)]
    each = [{"trigger": f"t{i}", "source": states[i % 200 :], "dest": states[i % 200]} for i in range(300)]
    largest = parsed(states=states, transitions=each)
    assert ElementTree.fromstring(drawing.svg(largest)) is not None


def test_another_format_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="format must be one of svg, mermaid, not 'png'"):
        drawing.draw(BOOK, "png")
