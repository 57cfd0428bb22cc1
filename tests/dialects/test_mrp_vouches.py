"""Vouches: kept as given, counted by who gave them, and how far such words carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mrp_talk import Document, Talk, key, vouch as named_vouch

from commonplace.dialects.mrp import signatures
from commonplace.engine.peers.peers import VOUCH
from commonplace.engine.peers.vouches import AHEAD_MS
from commonplace.testing.subject import DAY_MS, Subject
from commonplace.wire.errors import Conflict, Forbidden, SecretLeakage, ValidationError
from commonplace.wire.record import Principal
from commonplace.wire.times import iso
from commonplace.wire.validate import check

Over = tuple[Subject, Callable[[Any], Any]]
BABEL, BABELS_KEY = key()


def vouch(voucher: str, subject: str, **more: Any) -> Document:
    """For whoever holds Babel's key."""
    return named_vouch(voucher, subject, BABELS_KEY, **more)


def level(talk: Talk, private: str, requester: str = "Babel") -> int:
    request = talk.sign(talk.request(requester=requester), private)
    used: int = talk.send(request, via=talk.mrp(peer=True))["meta"]["trust_level_used"]
    return used


def list_vouches(talk: Talk, subject: str, who: Principal | None = None) -> list[Any]:
    answer = talk.run(talk.mrp(who or Principal()).vouches(subject))
    check("mrp/vouches.response", answer)
    vouches: list[Any] = answer["vouches"]
    return vouches


def test_a_signed_vouch_of_a_bound_voucher_counts_and_makes_its_subject_vouched(over: Over) -> None:
    talk = Talk(*over)
    (voucher, public), babel = key(), BABEL
    talk.trust("djclawd", 2, public, voucher=True)
    assert level(talk, babel) == 1
    given = signatures.sign_vouch(vouch("djclawd", "Babel"), voucher)
    answer = talk.run(talk.mrp().vouch({"vouch": given}))
    check("mrp/vouch.response", answer)
    assert answer == {"vouch_id": given["id"], "counted": True}
    assert list_vouches(talk, "Babel") == [given]
    assert level(talk, babel) == 2
    assert level(talk, babel, "carol") == 1
    assert talk.ask(requester="Babel", via=talk.mrp(peer=True))["meta"]["trust_level_used"] == 0, "nothing is proved"


def test_a_vouch_counts_no_more_once_its_voucher_is_removed(over: Over) -> None:
    talk = Talk(*over)
    (voucher, public), babel = key(), BABEL
    talk.trust("djclawd", 2, public, voucher=True)
    assert talk.vouched(signatures.sign_vouch(vouch("djclawd", "Babel"), voucher))
    talk.run(talk.engine.peers.unbind(Principal(), "djclawd"))
    assert level(talk, babel) == 1
    talk.trust("djclawd", 2, public)
    assert level(talk, babel) == 1, "trusted, but not as a voucher"
    talk.trust("djclawd", 2, key()[1], voucher=True)
    assert level(talk, babel) == 1, "its key is another now"
    talk.trust("djclawd", 2, public, voucher=True)
    assert level(talk, babel) == 2


def test_self_vouches_expired_ones_and_those_of_strangers_do_not_count(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("djclawd", 2, public, voucher=True)
    now = talk.subject.clock()
    assert not talk.vouched(signatures.sign_vouch(vouch("djclawd", "djclawd"), private))
    assert not talk.vouched(vouch("stranger", "Babel"))
    assert not talk.vouched(signatures.sign_vouch(vouch("stranger", "Babel"), key()[0]))
    assert not talk.vouched(vouch("djclawd", "Babel")), "whose key is bound signs"
    over_already = vouch("djclawd", "Babel", scope={"valid_until": iso(now)})
    assert not talk.vouched(signatures.sign_vouch(over_already, private))
    still = signatures.sign_vouch(vouch("djclawd", "Babel", scope={"valid_until": iso(now + DAY_MS)}), private)
    assert talk.vouched(still)
    assert still in list_vouches(talk, "Babel")
    babel = BABEL
    assert level(talk, babel) == 2
    talk.subject.clock.advance(DAY_MS)
    assert level(talk, babel) == 1
    assert still not in list_vouches(talk, "Babel")


def test_a_day_as_the_end_means_all_of_that_day(over: Over) -> None:
    talk = Talk(*over)
    talk.trust("djclawd", 2, voucher=True)
    assert talk.vouched(vouch("djclawd", "Babel", scope={"valid_until": iso(talk.subject.clock())[:10]}))


def test_a_voucher_without_a_key_counts_when_it_hands_the_vouch_in_itself(over: Over) -> None:
    talk = Talk(*over)
    talk.trust("djclawd", 3, voucher=True)
    other = Principal("t", "local", "writer", ("someone",))
    assert not talk.vouched(vouch("djclawd", "Babel"), who=other)
    own = Principal("t", "local", "writer", ("djclawd",))
    assert talk.vouched(vouch("djclawd", "Babel"), who=own)


@pytest.mark.parametrize("spoil", [
    lambda v: v.pop("claim"),
    lambda v: v["claim"].update(level="god"),
    lambda v: v.update(created_at="once"),
    lambda v: v["scope"].update(valid_until="whenever"),
    lambda v: v["claim"].update(statement="knows everything"),
    lambda v: v["subject"].update(agent_id="Mallory"),
    lambda v: v["signatures"].update(voucher_signature="nonsense!"),
    lambda v: v["signatures"].update(hash="sha256:" + "0" * 64),
    lambda v: v["voucher"].update(public_key="AAAA"),
    lambda v: v["voucher"].update(public_key=key()[1]),
])  # fmt: skip
@pytest.mark.parametrize("bound", [True, False])
def test_what_is_malformed_or_wrongly_signed_is_refused_and_not_kept(over: Over, spoil: Any, bound: bool) -> None:
    talk = Talk(*over)
    private, public = key()
    if bound:
        talk.trust("djclawd", 2, public, voucher=True)
    given = signatures.sign_vouch(vouch("djclawd", "Babel"), private)
    spoil(given)
    with pytest.raises(ValidationError):
        talk.vouched(given)
    assert talk.run(talk.engine._core.primary.records("local", VOUCH)) == []


def test_one_signed_with_another_key_than_the_bound_one_is_refused(over: Over) -> None:
    talk = Talk(*over)
    talk.trust("djclawd", 2, key()[1], voucher=True)
    with pytest.raises(ValidationError, match="bound to djclawd"):
        talk.vouched(signatures.sign_vouch(vouch("djclawd", "Babel"), key()[0]))


def test_without_a_token_only_what_counts_is_kept(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("djclawd", 2, public, voucher=True)
    with pytest.raises(Forbidden):
        talk.vouched(vouch("djclawd", "Babel"), peer=True)
    assert list_vouches(talk, "Babel") == []
    assert talk.vouched(signatures.sign_vouch(vouch("djclawd", "Babel"), private), peer=True)
    with pytest.raises(Forbidden):
        talk.vouched(vouch("djclawd", "Babel"), who=Principal("r", "local", "reader"))


def test_sent_twice_it_is_kept_once_and_an_id_means_one_vouch(over: Over) -> None:
    talk = Talk(*over)
    given = vouch("djclawd", "Babel")
    talk.vouched(given)
    talk.vouched(given)
    assert list_vouches(talk, "Babel") == [given]
    with pytest.raises(Conflict):
        talk.vouched({**given, "created_at": "2025-06-02"})
    talk.vouched({**vouch("other", "Babel"), "id": given["id"]})
    assert len(list_vouches(talk, "Babel")) == 2, "ids are each voucher's own"


def test_vouches_are_their_tenants(over: Over) -> None:
    talk = Talk(*over)
    talk.vouched(vouch("djclawd", "Babel"))
    assert list_vouches(talk, "Babel", Principal("x", "globex")) == []
    assert list_vouches(talk, "nobody") == []


def test_a_vouch_that_names_its_subjects_key_vouches_for_that_key_only(over: Over) -> None:
    talk = Talk(*over)
    (babel, public), (mallory, _) = key(), key()
    talk.trust("djclawd", 3, voucher=True)
    given = named_vouch("djclawd", "Babel", public)
    assert talk.vouched(given)
    assert (level(talk, babel), level(talk, mallory)) == (2, 1)


def test_a_vouch_by_name_counts_only_for_the_key_bound_to_it(over: Over) -> None:
    talk = Talk(*over)
    (babel, public), (mallory, _) = key(), key()
    talk.trust("djclawd", 3, voucher=True)
    assert not talk.vouched(named_vouch("djclawd", "Babel")), "anyone can be called so"
    assert (level(talk, babel), level(talk, mallory)) == (1, 1)
    talk.trust("Babel", 1, public)
    assert (level(talk, babel), level(talk, mallory)) == (2, 0)
    assert talk.vouched(named_vouch("djclawd", "Babel"))


@pytest.mark.parametrize("spelled", ["DJCLAWD", "Djclawd", "djclawd "])
def test_a_self_vouch_in_other_letters_does_not_count(over: Over, spelled: str) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("djclawd", 2, public, voucher=True)
    mine = signatures.sign_vouch(vouch("djclawd", spelled), private)
    assert not talk.vouched(mine)
    with pytest.raises(Forbidden):
        talk.vouched(signatures.sign_vouch(vouch("djclawd", spelled), private), peer=True)
    assert level(talk, BABEL, spelled) == 1


def test_a_vouch_from_the_future_is_refused(over: Over) -> None:
    talk = Talk(*over)
    private, public = key()
    talk.trust("djclawd", 2, public, voucher=True)
    for ahead in (AHEAD_MS + 1, DAY_MS):
        early = vouch("djclawd", "Babel", created_at=iso(talk.subject.clock() + ahead))
        with pytest.raises(ValidationError, match="from the future"):
            talk.vouched(signatures.sign_vouch(early, private))
    in_time = vouch("djclawd", "Babel", created_at=iso(talk.subject.clock() + AHEAD_MS))
    assert talk.vouched(signatures.sign_vouch(in_time, private))


def test_without_a_subject_all_are_listed_in_pages(over: Over) -> None:
    talk = Talk(*over)
    for subject in ("Babel", "carol", "dave"):
        talk.vouched(vouch("djclawd", subject))
    everything = talk.run(talk.mrp().vouches())
    assert len(everything["vouches"]) == 3
    assert "next_cursor" not in everything
    first = talk.run(talk.mrp().vouches(limit=2))
    check("mrp/vouches.response", first)
    rest = talk.run(talk.mrp().vouches(limit=2, cursor=first["next_cursor"]))
    assert first["vouches"] + rest["vouches"] == everything["vouches"]
    assert "next_cursor" not in rest


def test_a_vouch_with_a_secret_in_it_is_refused(over: Over) -> None:
    talk = Talk(*over)
    given = vouch("djclawd", "Babel")
    given["evidence"]["context"] = "-".join(["sk", "ant", "api03", "Q7fT2mZp9xLr4vWk8nBd3sHj6yGc1aEu"])
    with pytest.raises(SecretLeakage):
        talk.vouched(given)
