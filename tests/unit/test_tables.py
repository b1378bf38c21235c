"""Every state table, in full: each pair of state and event is a move or is refused, and nothing is stuck."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from holdfast.core import delivery, effects, journal, processes, segments, sessions, turns
from holdfast.errors import IllegalMove
from tests.tables import every


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of moves and the thing that moves by it.  `final` is written here again, on purpose."""

    name: str
    states: type[StrEnum]
    events: type[StrEnum]
    moves: Mapping[tuple[Any, Any], Any]
    first: StrEnum
    final: frozenset[str]
    state_after: Callable[[Any, Any], StrEnum]


def session_after(state: sessions.SessionState, event: sessions.SessionEvent) -> sessions.SessionState:
    session = sessions.Session(
        id="it", key="k", channel="web", owner="o", one_shot=False, created_at=0, updated_at=0, state=state
    )
    return session.on(event)


def turn_after(state: turns.TurnState, event: turns.TurnEvent) -> turns.TurnState:
    return turns.Turn(id="it", session_id="s", ordinal=1, accepted_at=0, state=state).on(event).state


def call_after(state: effects.CallState, event: effects.CallEvent) -> effects.CallState:
    call = effects.Call(id="it", turn_id="t", session_id="s", name="fetch", effect=effects.Effect.PURE, state=state)
    return call.on(event).state


def delivery_after(state: delivery.DeliveryState, event: delivery.DeliveryEvent) -> delivery.DeliveryState:
    sent = delivery.Delivery(
        id="it", turn_id="t", session_id="s", target="log:", part=1, text="", created_at=0, due_at=0, state=state
    )
    return sent.on(event).state


def segment_after(state: segments.SegmentState, event: segments.SegmentEvent) -> segments.SegmentState:
    segment = segments.Segment(
        id="it", session_id="s", owner="o", first_generation=1, last_generation=1, created_at=0, due_at=0, state=state
    )
    return segment.on(event).state


def process_after(state: processes.ProcessState, event: processes.ProcessEvent) -> processes.ProcessState:
    process = processes.Process(
        id="it", session_id="s", turn_id="t", owner="o", home="h", command="true", workdir="/", started_at=0, state=state
    )
    return process.on(event).state


TABLES = [
    Table(
        name="sessions",
        states=sessions.SessionState,
        events=sessions.SessionEvent,
        moves=sessions.MOVES,
        first=sessions.SessionState.OPEN,
        final=frozenset({"ended"}),
        state_after=session_after,
    ),
    Table(
        name="turns",
        states=turns.TurnState,
        events=turns.TurnEvent,
        moves=turns.MOVES,
        first=turns.TurnState.QUEUED,
        final=frozenset({"completed", "failed", "cancelled"}),
        state_after=turn_after,
    ),
    Table(
        name="effects",
        states=effects.CallState,
        events=effects.CallEvent,
        moves=effects.MOVES,
        first=effects.CallState.PLANNED,
        final=frozenset({"ok", "error", "unknown"}),
        state_after=call_after,
    ),
    Table(
        name="delivery",
        states=delivery.DeliveryState,
        events=delivery.DeliveryEvent,
        moves=delivery.MOVES,
        first=delivery.DeliveryState.PENDING,
        final=frozenset({"delivered"}),
        state_after=delivery_after,
    ),
    Table(
        name="memory",
        states=segments.SegmentState,
        events=segments.SegmentEvent,
        moves=segments.MOVES,
        first=segments.SegmentState.OPEN,
        final=frozenset({"committed", "waived"}),
        state_after=segment_after,
    ),
    Table(
        name="processes",
        states=processes.ProcessState,
        events=processes.ProcessEvent,
        moves=processes.MOVES,
        first=processes.ProcessState.RUNNING,
        final=frozenset({"exited", "lost"}),
        state_after=process_after,
    ),
]
each_table = pytest.mark.parametrize("table", [pytest.param(table, id=table.name) for table in TABLES])
each_pair = every(
    "table, state, event", [(table, *pair) for table in TABLES for pair in product(table.states, table.events)]
)


def reachable(moves: Mapping[tuple[Any, Any], Any], start: StrEnum) -> set[StrEnum]:
    found, frontier = {start}, [start]
    while frontier:
        here = frontier.pop()
        ahead = {after for (before, _), after in moves.items() if before is here} - found
        found |= ahead
        frontier += ahead
    return found


@each_pair
def test_a_pair_of_state_and_event_moves_by_the_table_or_is_refused(table: Table, state: StrEnum, event: StrEnum) -> None:
    """T3: what the table does not name cannot happen."""
    if (state, event) in table.moves:
        assert table.state_after(state, event) is table.moves[state, event]
    else:
        with pytest.raises(IllegalMove, match=f"^it is {state}: it cannot {event}$") as refused:
            table.state_after(state, event)
        assert refused.value.state == state


@each_table
def test_a_final_state_refuses_every_event(table: Table) -> None:
    """T3: terminal is final."""
    for state, event in product(table.final, table.events):
        with pytest.raises(IllegalMove):
            table.state_after(table.states(state), event)


@each_table
def test_only_the_final_states_have_no_way_out(table: Table) -> None:
    """A1, T3: nothing else can get stuck, and nothing final can move."""
    assert {state.value for state in table.states} - {before for before, _ in table.moves} == table.final


@each_table
def test_every_state_can_be_reached(table: Table) -> None:
    assert reachable(table.moves, table.first) == set(table.states)


@each_table
def test_every_state_leads_to_a_final_one(table: Table) -> None:
    """A1: whatever is begun can come to its end."""
    assert [state for state in table.states if not reachable(table.moves, state) & table.final] == []


@each_table
def test_every_event_moves_something(table: Table) -> None:
    assert {event for _, event in table.moves} == set(table.events)


@each_table
def test_no_move_leads_back_to_where_it_began(table: Table) -> None:
    """A compare-and-set on the state could not tell such a move from its repetition."""
    assert [pair for pair, after in table.moves.items() if pair[0] is after] == []


@each_table
def test_a_table_cannot_be_changed(table: Table) -> None:
    with pytest.raises(TypeError):
        table.moves[table.first, next(iter(table.events))] = table.first  # type: ignore[index]


def test_turns_are_either_settled_or_in_flight() -> None:
    """CONSERVATION: accepted = settled + in flight, with no state in both and none in neither."""
    assert {"completed", "failed", "cancelled", "interrupted"} == turns.SETTLED
    assert {"queued", "running", "waiting"} == turns.IN_FLIGHT
    assert set(turns.TurnState) == turns.SETTLED | turns.IN_FLIGHT
    assert not turns.SETTLED & turns.IN_FLIGHT


def test_live_turns_are_those_that_have_begun_and_not_ended() -> None:
    """T1: the states of which a session has one at most."""
    assert {"running", "waiting"} == turns.LIVE
    assert turns.LIVE < turns.IN_FLIGHT


def test_an_interrupted_turn_is_settled_and_not_final() -> None:
    """R5, T3: it is at rest for its user, and its only way out is to be resumed."""
    assert {"completed", "failed", "cancelled"} == turns.FINAL
    assert {"interrupted"} == turns.SETTLED - turns.FINAL
    ways_out = {pair: after for pair, after in turns.MOVES.items() if pair[0] is turns.TurnState.INTERRUPTED}
    assert ways_out == {(turns.TurnState.INTERRUPTED, turns.TurnEvent.RESUME): turns.TurnState.QUEUED}


def test_every_way_into_a_running_turn_begins_in_the_queue() -> None:
    """P1: recovery is no second path, so whatever runs again was claimed like anything else."""
    assert {before for (before, _), after in turns.MOVES.items() if after is turns.TurnState.RUNNING} == {"queued"}


def test_every_turn_in_flight_can_be_cancelled() -> None:
    """J9: cancel works in every state that has an outcome still to come."""
    cancellable = {before for before, event in turns.MOVES if event is turns.TurnEvent.CANCEL}
    assert cancellable == turns.IN_FLIGHT


def test_only_a_running_turn_can_be_lost() -> None:
    """R4: what was claimed but has not started is not interrupted."""
    assert {before for before, event in turns.MOVES if event is turns.TurnEvent.LOSE} == {turns.TurnState.RUNNING}


def test_every_settled_turn_has_its_own_closing_entry() -> None:
    """A1: the outcome is visible in the journal, and the kind tells which it is."""
    assert {state: f"turn.{state}" for state in turns.SETTLED} == {
        state: each.kind for state, each in journal.CLOSING.items()
    }


def test_search_covers_what_was_asked_and_what_was_answered() -> None:
    assert {"turn.accepted", "turn.completed"} == journal.SEARCHED


def test_a_tool_call_that_ended_is_never_started_again() -> None:
    """X1, R10."""
    assert {"ok", "error", "unknown"} == effects.ENDED
    assert all(not reachable(effects.MOVES, state) - {state} for state in effects.ENDED)


def test_deliveries_are_either_settled_or_not() -> None:
    """D2: an unknown outcome is an outcome, although a labelled resend may better it."""
    assert {"pending", "sending", "retry"} == delivery.UNSETTLED
    assert {"delivered", "failed", "expired", "unknown"} == delivery.SETTLED
    assert set(delivery.DeliveryState) == delivery.UNSETTLED | delivery.SETTLED


def test_everything_sent_was_marked_as_sending_first() -> None:
    """D1: no state but `sending` leads to the news that something arrived, except a reconciled unknown."""
    before = {before for (before, _), after in delivery.MOVES.items() if after is delivery.DeliveryState.DELIVERED}
    assert before == {delivery.DeliveryState.SENDING, delivery.DeliveryState.UNKNOWN}


def test_what_was_given_up_goes_out_again_only_when_somebody_asks() -> None:
    ways_out = {event for before, event in delivery.MOVES if before in ("failed", "expired")}
    assert ways_out == {delivery.DeliveryEvent.REVIVE}


def test_a_message_joins_a_turn_only_while_it_waits() -> None:
    """T1, T2: what has begun, or is over, is a turn of its own."""
    assert {before for before, event in turns.MOVES if event is turns.TurnEvent.JOIN} == {turns.TurnState.QUEUED}


def test_a_lost_send_goes_out_again_only_as_a_repeat() -> None:
    """D1: there is no unlabelled way from unknown back to sending."""
    again = {event for (before, event), after in delivery.MOVES.items() if before == "unknown" and after == "sending"}
    assert again == {delivery.DeliveryEvent.REPEAT}
    assert {before for before, event in delivery.MOVES if event is delivery.DeliveryEvent.REPEAT} == {
        delivery.DeliveryState.UNKNOWN
    }


def test_every_segment_but_a_committed_one_is_dirty() -> None:
    """M6: debt stays debt until its provider has it."""
    assert {"open", "sealed", "committing"} == segments.DIRTY


def test_a_segment_is_sealed_before_it_is_committed() -> None:
    """M5: a turn that completes meanwhile opens a new segment, and is not swallowed by the commit in flight."""
    assert {before for (before, _), after in segments.MOVES.items() if after is segments.SegmentState.COMMITTING} == {
        "sealed"
    }


def test_a_suspended_session_never_opens_again() -> None:
    """R7: suspended wins."""
    assert reachable(sessions.MOVES, sessions.SessionState.SUSPENDED) == {"suspended", "ended"}
