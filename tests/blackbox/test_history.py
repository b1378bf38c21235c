"""The checker itself: an honest history passes, and each rule finds the forgery that breaks it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.blackbox.history import Acknowledgement, Entry, History, Item, Outcome, Poll, Receipt, Stream, check

S, A, B, C = "ses", "trn_a", "trn_b", "trn_c"


def entry(seq: int, turn_id: str, attempt: int, nth: int | None, kind: str, **data: object) -> Entry:
    return Entry(session_id=S, seq=seq, turn_id=turn_id, attempt=attempt, nth=nth, kind=kind, data=data)


NOTE = {"call_id": "c", "name": "keep_note"}
# One turn that was cut off and went on, one that is at rest after an interruption, and one that came after it.
JOURNAL = [
    entry(1, A, 0, None, "turn.accepted", text="n1 note: milk"),
    entry(2, A, 1, 1, "turn.started"),
    entry(3, A, 1, 2, "text", text="You wrote n1. "),
    entry(4, A, 1, None, "note", text="The gateway is restarting.", banner="restart"),
    entry(5, A, 1, None, "turn.interrupted", cause="restart_timeout"),
    entry(6, B, 0, None, "turn.accepted", text="n2 count"),
    entry(7, A, 2, 1, "turn.started"),
    entry(8, A, 2, 2, "tool.started", **NOTE, args={"text": "milk"}),
    entry(9, A, 2, 3, "tool.finished", **NOTE, outcome="ok"),
    entry(10, A, 2, 4, "text", text="Kept."),
    entry(11, A, 2, 5, "turn.completed"),
    entry(12, B, 1, 1, "turn.started"),
    entry(13, B, 1, 2, "reasoning", text="[System note: cut off]"),
    entry(14, B, 1, 3, "text", text="You wrote"),
    entry(15, B, 1, None, "turn.interrupted", cause="crash"),
    entry(16, B, 1, 4, "text", text=" n2"),  # It came in late, from a node that had been given up.
    entry(17, C, 0, None, "turn.accepted", text="n3 hello"),
    entry(18, C, 1, 1, "turn.started"),
    entry(19, C, 1, 2, "text", text="You wrote n3."),
    entry(20, C, 1, 3, "turn.completed"),
]
ITEMS = [
    Item(role="user", turn_id=A, text="n1 note: milk"),
    Item(role="assistant", turn_id=A, text="You wrote n1. ", recovered=True),
    Item(role="note", turn_id=A, text="The gateway is restarting.", recovered=True),
    Item(role="marker", turn_id=A, kind="interrupted"),
    Item(role="tool", turn_id=A, name="keep_note", args={"text": "milk"}, outcome="ok"),
    Item(role="assistant", turn_id=A, text="Kept."),
    Item(role="user", turn_id=B, text="n2 count"),
    Item(role="reasoning", turn_id=B, text="[System note: cut off]", recovered=True),
    Item(role="assistant", turn_id=B, text="You wrote n2", recovered=True),
    Item(role="marker", turn_id=B, kind="interrupted"),
    Item(role="user", turn_id=C, text="n3 hello"),
    Item(role="assistant", turn_id=C, text="You wrote n3."),
]
TURNS = {
    A: Receipt(id=A, session_id=S, state="completed", accepted_at=1, attempt=2),
    B: Receipt(id=B, session_id=S, state="interrupted", accepted_at=2, attempt=1, cause="crash"),
    C: Receipt(id=C, session_id=S, state="completed", accepted_at=3, attempt=1),
}


def honest() -> tuple[History, Outcome]:
    history = History(
        sent={"n1": "n1 note: milk", "n2": "n2 count", "n3": "n3 hello", "n9": "n9 never arrived"},
        acknowledged=[
            Acknowledgement(nonce=nonce, session_id=S, turn_id=turn_id)
            for nonce, turn_id in (("n1", A), ("n2", B), ("n3", C))
        ],
        streams=[Stream(session_id=S, entries=list(JOURNAL)), Stream(session_id=S, after=10, entries=JOURNAL[10:15])],
        polls=[Poll(session_id=S, seq=3, items=[ITEMS[0], replace(ITEMS[1], recovered=False)])],
        receipts=[replace(TURNS[A], state=state, attempt=1) for state in ("queued", "running", "interrupted", "queued")],
    )
    outcome = Outcome(journals={S: list(JOURNAL)}, transcripts={S: list(ITEMS)}, turns=dict(TURNS), notes=["k1 milk"])
    return history, outcome


def test_an_honest_history_passes() -> None:
    assert check(*honest()) == []


def journal(change: Callable[[list[Entry]], object]) -> Callable[[History, Outcome], Outcome]:
    """Forge the journal, and every stream of it in the same way."""

    def forge(history: History, outcome: Outcome) -> Outcome:
        entries = list(outcome.journals[S])
        change(entries)
        numbered = [replace(each, seq=seq) for seq, each in enumerate(entries, 1)]
        history.streams.clear()
        history.polls.clear()
        return replace(outcome, journals={S: numbered})

    return forge


def transcript(change: Callable[[list[Item]], object]) -> Callable[[History, Outcome], Outcome]:
    def forge(history: History, outcome: Outcome) -> Outcome:
        items = list(outcome.transcripts[S])
        change(items)
        return replace(outcome, transcripts={S: items})

    return forge


def turn(turn_id: str, **change: object) -> Callable[[History, Outcome], Outcome]:
    def forge(history: History, outcome: Outcome) -> Outcome:
        return replace(outcome, turns={**outcome.turns, turn_id: dataclasses.replace(TURNS[turn_id], **change)})  # type: ignore[arg-type]

    return forge


def seen(change: Callable[[History], object]) -> Callable[[History, Outcome], Outcome]:
    def forge(history: History, outcome: Outcome) -> Outcome:
        change(history)
        return outcome

    return forge


def without(turn_id: str) -> Callable[[History, Outcome], Outcome]:
    def forge(history: History, outcome: Outcome) -> Outcome:
        return replace(outcome, turns={key: value for key, value in outcome.turns.items() if key != turn_id})

    return forge


def receipts(*told: Receipt) -> Callable[[History, Outcome], Outcome]:
    return seen(lambda history: history.receipts.extend(told))


def notes(*lines: str) -> Callable[[History, Outcome], Outcome]:
    return lambda history, outcome: replace(outcome, notes=list(lines))


def move(entries: list[Entry], origin: int, target: int) -> None:
    entries.insert(target, entries.pop(origin))


FORGERIES: dict[str, tuple[str, Callable[[History, Outcome], Outcome]]] = {
    "an acknowledged turn is gone": ("missing", without(C)),
    "an acknowledged message is not in the journal": ("missing", journal(lambda each: each.pop(16))),
    "an acknowledged message is not in the transcript": ("missing", transcript(lambda items: items.pop(10))),
    "an acknowledged turn never ends": ("unsettled", turn(C, state="running")),
    "a message is accepted twice": (
        "doubled",
        journal(lambda each: each.append(entry(0, "trn_d", 0, None, "turn.accepted", text="n3 hello"))),
    ),
    "a message that was never acknowledged is accepted twice": (
        "doubled",
        journal(
            lambda each: each.extend(entry(0, name, 0, None, "turn.accepted", text="n9 never arrived") for name in "de")
        ),
    ),
    "one message has two turns": (
        "doubled",
        seen(lambda history: history.acknowledged.append(Acknowledgement(nonce="n3", session_id=S, turn_id=B))),
    ),
    "a message is changed": ("changed", seen(lambda history: history.sent.update(n3="n3 hello, world"))),
    "the journal has a gap": ("gap", lambda _, outcome: replace(outcome, journals={S: JOURNAL[:3] + JOURNAL[4:]})),
    "a follower misses an entry": ("stream", seen(lambda history: history.streams[0].entries.pop(4))),
    "a follower misses the first entries": ("stream", seen(lambda history: history.streams[1].entries.pop(0))),
    "a follower sees an entry twice": ("stream", seen(lambda history: history.streams[0].entries.insert(4, JOURNAL[3]))),
    "a follower was shown another text": (
        "stream",
        seen(lambda history: history.streams[0].entries.__setitem__(2, replace(JOURNAL[2], data={"text": "You"}))),
    ),
    "a follower was shown what is not there": (
        "stream",
        seen(lambda history: history.streams[0].entries.append(entry(21, C, 1, 4, "text", text="more"))),
    ),
    "a follower must begin anew": ("reset", seen(lambda history: setattr(history.streams[0], "resets", 1))),
    "a reader saw what is not there": (
        "read",
        seen(lambda history: history.polls.append(Poll(session_id=S, seq=3, items=[ITEMS[0], ITEMS[1], ITEMS[5]]))),
    ),
    "a reader did not see what was there": (
        "read",
        seen(lambda history: history.polls.append(Poll(session_id=S, seq=3, items=ITEMS[:1]))),
    ),
    "a reader was ahead of the journal": (
        "read",
        seen(lambda history: history.polls.append(Poll(session_id=S, seq=21, items=ITEMS))),
    ),
    "a turn is not in the transcript": ("read", transcript(lambda items: items.__delitem__(slice(0, 6)))),
    "the transcript has lost words": ("read", transcript(lambda items: items.pop(5))),
    "an answer says it twice": (
        "answer",
        journal(lambda each: each.__setitem__(18, replace(each[18], data={"text": "You wrote n3. You wrote n3."}))),
    ),
    "an answer is no answer": ("answer", journal(lambda each: each.pop(18))),
    "an unfinished answer says it twice": (
        "answer",
        journal(lambda each: each.__setitem__(13, replace(each[13], data={"text": "You wrote n2 n2"}))),
    ),
    "a turn ends twice": ("end", journal(lambda each: each.append(entry(0, C, 1, 4, "turn.completed")))),
    "a completed turn has no end": ("end", journal(lambda each: each.pop(19))),
    "a turn ends as something else": ("end", turn(C, state="failed")),
    "a turn goes on behind its end": ("end", journal(lambda each: move(each, 18, 19))),
    "a turn that went on goes on behind its end": ("end", journal(lambda each: move(each, 9, 10))),
    "an effect happens twice": ("effect", notes("k1 milk", "k1 milk")),
    "an effect happens twice under another key": ("effect", notes("k1 milk", "k2 milk")),
    "an effect that is told of did not happen": ("effect", notes()),
    "an interruption has no marker": ("marker", transcript(lambda items: items.pop(9))),
    "an interruption has two markers": ("marker", transcript(lambda items: items.insert(9, ITEMS[9]))),
    "an attempt is interrupted twice": ("marker", journal(lambda each: each.insert(5, each[4]))),
    "a marker stands above what was recovered": ("marker", transcript(lambda items: items.insert(8, items.pop(9)))),
    "a marker stands below what came later": ("marker", transcript(lambda items: items.insert(5, items.pop(3)))),
    "what was recovered is not marked so": (
        "marker",
        transcript(lambda items: items.__setitem__(slice(1, 3), [replace(each, recovered=False) for each in items[1:3]])),
    ),
    "what was not interrupted is marked as recovered": (
        "marker",
        transcript(lambda items: items.__setitem__(11, replace(items[11], recovered=True))),
    ),
    "a turn is interrupted and nothing says so": ("marker", turn(C, state="interrupted")),
    "turns are accepted in another order": ("order", journal(lambda each: move(each, 16, 5))),
    "a turn begins while another runs": ("order", journal(lambda each: move(each, 11, 9))),
    "a turn overtakes another": ("order", journal(lambda each: [move(each, 16 + nth, 11 + nth) for nth in range(4)])),
    "a turn goes on while another runs": ("order", journal(lambda each: move(each, 6, 12))),
    "a turn that is final moves": (
        "receipt",
        receipts(replace(TURNS[C], state="completed"), replace(TURNS[C], state="cancelled")),
    ),
    "a final cause changes": ("receipt", receipts(replace(TURNS[C], cause="user"))),
    "an attempt is taken back": ("receipt", receipts(replace(TURNS[B], attempt=2))),
    "the time of acceptance changes": ("receipt", receipts(replace(TURNS[B], accepted_at=7))),
    "a turn that was shown is gone": ("receipt", receipts(Receipt(id="trn_x", session_id=S, state="queued", accepted_at=1))),
    "a chat is told twice": ("banner", journal(lambda each: each.insert(4, each[3]))),
    "a message has two system notes": (
        "system note",
        journal(lambda each: each.__setitem__(12, replace(each[12], data={"text": "[System note: a] [System note: b]"}))),
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_history_is_found_out(forgery: str) -> None:
    rule, forge = FORGERIES[forgery]
    history, outcome = honest()
    violations = check(history, forge(history, outcome))
    assert any(each.startswith(f"{rule}:") for each in violations), violations
