"""The checker itself: an honest round passes, and each rule finds the forgery that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.blackbox.history import Acknowledgement, Entry, History, Item, Outcome, Poll, Receipt, Stream
from tests.chaos.receiver import Send
from tests.chaos.verdict import Delivery, Reply, Round, Session, Slot, Tally, judge
from tests.models.servers import counted

# A conversation of two turns, of which the first was cut off and went on; a webhook; an API request; a job; a cancel.
CHAT, HOOK, API, JOB = "ses_chat", "ses_hook", "ses_api", "ses_job"
A, B, H, R, J = "trn_a", "trn_b", "trn_h", "trn_r", "trn_j"
NONCES = {A: "n1", B: "n2", H: "n3", R: "n4", J: "n5"}
PLACES = {A: CHAT, B: CHAT, H: HOOK, R: API, J: JOB}
WORDS = 4


def text_of(turn_id: str) -> str:
    return f"{NONCES[turn_id]} script: count {WORDS} at 40"


def answer_of(turn_id: str) -> str:
    return counted(NONCES[turn_id], WORDS)


def entry(seq: int, turn_id: str, attempt: int, nth: int | None, kind: str, **data: object) -> Entry:
    return Entry(session_id=PLACES[turn_id], seq=seq, turn_id=turn_id, attempt=attempt, nth=nth, kind=kind, data=data)


def alone(turn_id: str) -> list[Entry]:
    return [
        entry(1, turn_id, 0, None, "turn.accepted", text=text_of(turn_id)),
        entry(2, turn_id, 1, 1, "turn.started"),
        entry(3, turn_id, 1, 2, "text", text=answer_of(turn_id)),
        entry(4, turn_id, 1, 3, "turn.completed"),
    ]


CUT = 12
TALK = [
    entry(1, A, 0, None, "turn.accepted", text=text_of(A)),
    entry(2, A, 1, 1, "turn.started"),
    entry(3, A, 1, 2, "text", text=answer_of(A)[:CUT]),
    entry(4, A, 1, None, "turn.interrupted", cause="crash", continues=True),
    entry(5, B, 0, None, "turn.accepted", text=text_of(B)),
    entry(6, A, 2, 1, "turn.started"),
    entry(7, A, 2, 2, "text", text=answer_of(A)[CUT:]),
    entry(8, A, 2, 3, "turn.completed"),
    entry(9, B, 1, 1, "turn.started"),
    entry(10, B, 1, 2, "text", text=answer_of(B)),
    entry(11, B, 1, 3, "turn.completed"),
]


def items_of(turn_id: str) -> list[Item]:
    return [
        Item(role="user", turn_id=turn_id, text=text_of(turn_id)),
        Item(role="assistant", turn_id=turn_id, text=answer_of(turn_id)),
    ]


TRANSCRIPT = [
    Item(role="user", turn_id=A, text=text_of(A)),
    Item(role="assistant", turn_id=A, text=answer_of(A)[:CUT], recovered=True),
    Item(role="marker", turn_id=A, kind="interrupted"),
    Item(role="assistant", turn_id=A, text=answer_of(A)[CUT:]),
    *items_of(B),
]
SENT = Send(id="dlv_h", turn_id=H, part=1, text=answer_of(H), repeat=False, taken=True)
DELIVERY = Delivery(id="dlv_h", turn_id=H, part=1, state="delivered")


def honest() -> Round:
    history = History(
        sent={nonce: text_of(turn_id) for turn_id, nonce in NONCES.items()},
        answers={nonce: answer_of(turn_id) for turn_id, nonce in NONCES.items()},
        acknowledged=[
            Acknowledgement(nonce=nonce, session_id=PLACES[turn_id], turn_id=turn_id) for turn_id, nonce in NONCES.items()
        ],
        streams=[Stream(session_id=CHAT, entries=list(TALK))],
        polls=[Poll(session_id=CHAT, seq=3, items=[TRANSCRIPT[0], replace(TRANSCRIPT[1], recovered=False)])],
    )
    outcome = Outcome(
        journals={CHAT: list(TALK), HOOK: alone(H), API: alone(R), JOB: alone(J)},
        transcripts={CHAT: list(TRANSCRIPT), HOOK: items_of(H), API: items_of(R), JOB: items_of(J)},
        turns={
            turn_id: Receipt(
                id=turn_id, session_id=PLACES[turn_id], state="completed", accepted_at=1, attempt=2 if turn_id == A else 1
            )
            for turn_id in NONCES
        },
    )
    ends = {HOOK: "webhook_complete", API: "api_complete", JOB: "cron_complete"}
    return Round(
        history=history,
        outcome=outcome,
        tally=Tally(accepted=5, settled=5, in_flight=0, turns={"completed": 5}),
        sessions={
            CHAT: Session(id=CHAT, state="open", one_shot=False),
            **{each: Session(id=each, state="ended", one_shot=True, end_reason=reason) for each, reason in ends.items()},
        },
        deliveries=[DELIVERY],
        sends=[SENT],
        replies=[Reply(nonce="n4", text=answer_of(R))],
        jobs={"n5": [Slot(outcome="ran", turn_id=J)]},
        alone={"n3": "webhook_complete", "n4": "api_complete", "n5": "cron_complete"},
        delivered=frozenset({"n3"}),
        began=["effect-1"],
        told={"prc_1": 1},
    )


def test_an_honest_round_passes() -> None:
    assert judge(honest()) == []


def test_a_turn_that_its_client_cancelled_or_that_struck_out_is_not_lost() -> None:
    """S2: three interruptions in a row are a reason, and so is the wish of the client."""
    cancelled = talk(lambda each: each.__setitem__(10, replace(each[10], kind="turn.cancelled")))(honest())
    cancelled = turn(B, state="cancelled")(cancelled)
    assert any(each.startswith("lost:") for each in judge(cancelled))
    assert judge(replace(cancelled, cancels=frozenset({B}))) == []


Forge = Callable[[Round], Round]


def changed(**changes: Any) -> Forge:
    return lambda found: replace(found, **changes)


def talk(change: Callable[[list[Entry]], object]) -> Forge:
    """Forge the journal of the conversation, numbered anew; nothing else that was seen of it is kept."""

    def forge(found: Round) -> Round:
        entries = list(found.outcome.journals[CHAT])
        change(entries)
        numbered = [replace(each, seq=seq) for seq, each in enumerate(entries, 1)]
        found.history.streams.clear()
        found.history.polls.clear()
        return replace(found, outcome=replace(found.outcome, journals={**found.outcome.journals, CHAT: numbered}))

    return forge


def turn(turn_id: str, **changes: Any) -> Forge:
    def forge(found: Round) -> Round:
        turns = {**found.outcome.turns, turn_id: replace(found.outcome.turns[turn_id], **changes)}
        return replace(found, outcome=replace(found.outcome, turns=turns))

    return forge


def without(turn_id: str) -> Forge:
    def forge(found: Round) -> Round:
        turns = {key: value for key, value in found.outcome.turns.items() if key != turn_id}
        return replace(found, outcome=replace(found.outcome, turns=turns))

    return forge


def streamed(change: Callable[[list[Entry]], object]) -> Forge:
    def forge(found: Round) -> Round:
        change(found.history.streams[0].entries)
        return found

    return forge


def acknowledged(nonce: str, turn_id: str) -> Forge:
    def forge(found: Round) -> Round:
        ack = Acknowledgement(nonce=nonce, session_id=PLACES[turn_id], turn_id=turn_id)
        found.history.acknowledged.append(ack)
        return found

    return forge


def says(place: int, text: str) -> Forge:
    return talk(lambda each: each.__setitem__(place, replace(each[place], data={"text": text})))


def session(session_id: str, **changes: Any) -> Forge:
    return lambda found: replace(
        found, sessions={**found.sessions, session_id: replace(found.sessions[session_id], **changes)}
    )


FORGERIES: dict[str, tuple[str, Forge]] = {
    "an acknowledged turn is gone": ("missing", without(H)),
    "an acknowledged turn never ends": ("unsettled", turn(B, state="running")),
    "a turn was given up after one interruption": ("lost", turn(A, state="interrupted")),
    "a turn was cancelled, and no client had asked for it": ("lost", turn(B, state="cancelled")),
    "a turn failed with a model that always answered": ("lost", turn(B, state="failed")),
    "a turn failed, and not with its model": (
        "lost",
        lambda found: replace(turn(B, state="failed")(found), excuses=frozenset({"x"})),
    ),
    "one input became two turns": ("doubled", acknowledged("n3", B)),
    "an answer is lost": ("answer", talk(lambda each: each.pop(9))),
    "an answer is doubled": ("answer", says(9, f"{answer_of(B)} {answer_of(B)}")),
    "an answer has lost a word": ("answer", says(9, answer_of(B).replace(" w001", ""))),
    "an answer has lost its end": ("answer", says(9, answer_of(B)[:-5])),
    "an answer begins anew after an interruption": ("answer", says(6, answer_of(A))),
    "an answer leaves something out after an interruption": ("answer", says(6, answer_of(A)[CUT + 5 :])),
    "two turns are reordered": ("order", talk(lambda each: each.insert(0, each.pop(4)))),
    "a turn overtakes another": ("order", talk(lambda each: each.insert(5, each.pop(8)))),
    "a reader gets an entry twice": ("stream", streamed(lambda each: each.insert(4, each[3]))),
    "a reader misses an entry": ("stream", streamed(lambda each: each.pop(4))),
    "a reader saw what is not there": ("stream", streamed(lambda each: each.append(entry(12, B, 1, 4, "text", text="x")))),
    "a client got another answer": ("reply", changed(replies=[Reply(nonce="n4", text="n4: w000")])),
    "a client got the answer to something else": ("reply", changed(replies=[Reply(nonce="n4", text=answer_of(H))])),
    "a delivery came twice": ("delivery", changed(sends=[SENT, SENT])),
    "a delivery came twice under another id": (
        "delivery",
        changed(sends=[SENT, replace(SENT, id="dlv_x")], deliveries=[DELIVERY, replace(DELIVERY, id="dlv_x")]),
    ),
    "a delivery never came": ("delivery", changed(sends=[])),
    "a delivery was never made": ("delivery", changed(sends=[], deliveries=[])),
    "a delivery was given up": ("delivery", changed(deliveries=[replace(DELIVERY, state="failed")])),
    "a delivery has another text": ("delivery", changed(sends=[replace(SENT, text=answer_of(R))])),
    "something came that was never sent": ("delivery", changed(sends=[SENT, replace(SENT, id="dlv_y", turn_id="t")])),
    "a session for one input stays open": ("session", session(HOOK, state="open", end_reason=None)),
    "a session ends for another reason": ("session", session(API, end_reason="idle")),
    "a session for one input is gone": ("session", lambda found: replace(found, sessions={})),
    "a job ran twice": ("job", changed(jobs={"n5": [Slot(outcome="ran", turn_id=J)] * 2})),
    "a job is forgotten": ("job", changed(jobs={"n5": []})),
    "a job is due for ever": ("job", changed(jobs={"n5": [Slot(outcome="due")]})),
    "an effect happened twice": ("effect", changed(began=["effect-1", "effect-1"])),
    "the end of a command was never announced": ("announcement", changed(told={"prc_1": 0})),
    "the end of a command was announced twice": ("announcement", changed(told={"prc_1": 2})),
    "a turn is counted nowhere": (
        "conservation",
        changed(tally=Tally(accepted=6, settled=5, in_flight=0, turns={"completed": 5})),
    ),
    "a turn is in flight for ever": (
        "unsettled",
        changed(tally=Tally(accepted=5, settled=4, in_flight=1, turns={"completed": 4, "running": 1})),
    ),
    "an answer makes no sense": ("odd answer", changed(odd=["POST / was answered 500"])),
    "the audit found something": ("audit", changed(audit=["T1 one live turn per session: ses"])),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_round_is_found_out(forgery: str) -> None:
    """A1 A3 T2 J1 J8 D1 S1 X1 C1 CONSERVATION"""
    rule, forge = FORGERIES[forgery]
    violations = judge(forge(honest()))
    assert any(each.startswith(f"{rule}:") for each in violations), violations


def test_words_that_came_in_late_may_or_may_not_be_known_to_the_next_attempt() -> None:
    """J1: they are no repetition where the next attempt could not know them, and no gap where it did."""
    late = entry(0, A, 1, 3, "text", text=answer_of(A)[CUT : CUT + 5])
    for begins in (CUT, CUT + 5):
        found = talk(lambda each: each.insert(4, late))(honest())
        journal = list(found.outcome.journals[CHAT])
        journal[7] = replace(journal[7], data={"text": answer_of(A)[begins:]})
        said = [TRANSCRIPT[0], replace(TRANSCRIPT[1], text=answer_of(A)[: CUT + 5]), TRANSCRIPT[2]]
        said += [replace(TRANSCRIPT[3], text=answer_of(A)[begins:]), *TRANSCRIPT[4:]]
        outcome = replace(
            found.outcome,
            journals={**found.outcome.journals, CHAT: journal},
            transcripts={**found.outcome.transcripts, CHAT: said},
        )
        assert judge(replace(found, outcome=outcome)) == []
