"""Which audiences are this server, and which are what a relay could have been called by."""

from __future__ import annotations

import pytest

from commonplace.config import MrpConfig
from commonplace.engine.peers.audience import Address, is_own

KEY = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
LOOPBACK = Address("127.0.0.1", 8420)
LAN = Address("192.168.1.5", 8420)
NAMED = Address("127.0.0.1", 8420, ("memory.example.org",))
UNNAMED = MrpConfig()
ALICE = MrpConfig(name="alice")
BEHIND = MrpConfig(origins=("https://memory.example.org", "http://127.0.0.1:9"))


@pytest.mark.parametrize(
    ("audience", "settings", "address", "own"),
    [
        (KEY, UNNAMED, None, True), (KEY, BEHIND, LAN, True),
        (KEY[:-1], UNNAMED, None, False), ("", UNNAMED, None, False),
        ("http://127.0.0.1:8420", UNNAMED, LOOPBACK, True), ("http://localhost:8420", UNNAMED, LOOPBACK, True),
        ("http://[::1]:8420", UNNAMED, LOOPBACK, True), ("HTTP://LOCALHOST:8420/mrp", UNNAMED, LOOPBACK, True),
        ("http://127.0.0.1:8421", UNNAMED, LOOPBACK, False), ("http://127.0.0.1", UNNAMED, LOOPBACK, False),
        ("https://127.0.0.1:8420", UNNAMED, LOOPBACK, False), ("http://127.0.0.1:8420", UNNAMED, None, False),
        ("http://127.0.0.1:8420@relay.example", UNNAMED, LOOPBACK, False),
        ("http://127.0.0.1:8420", UNNAMED, LAN, False), ("http://192.168.1.5:8420", UNNAMED, LAN, True),
        ("http://192.168.1.6:8420", UNNAMED, LAN, False), ("http://alice-box:8420", UNNAMED, LAN, False),
        ("https://memory.example.org", UNNAMED, NAMED, True), ("http://memory.example.org:8420", UNNAMED, NAMED, True),
        ("https://memory.example.org:8421", UNNAMED, NAMED, False), ("https://example.org", UNNAMED, NAMED, False),
        # behind a proxy: exactly what is set, and no loopback
        ("https://memory.example.org", BEHIND, LOOPBACK, True), ("https://memory.example.org:443/", BEHIND, None, True),
        ("http://memory.example.org", BEHIND, NAMED, False), ("http://127.0.0.1:8420", BEHIND, LOOPBACK, False),
        ("http://127.0.0.1:9", BEHIND, LOOPBACK, True),
        # names: the one that every server has is nobody's
        ("alice", ALICE, None, True), ("Alice", ALICE, None, False), ("alice", UNNAMED, LOOPBACK, False),
        ("commonplace", UNNAMED, LOOPBACK, False), ("commonplace", ALICE, LOOPBACK, False),
    ],
)  # fmt: skip
def test_whose_an_audience_is(audience: str, settings: MrpConfig, address: Address | None, own: bool) -> None:
    assert is_own(audience, settings, KEY, address) is own
