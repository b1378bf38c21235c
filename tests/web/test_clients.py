"""What the gateway knows of clients that wait, were refused, or have read their answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from starlette.responses import Response

from holdfast.core.retries import Try
from holdfast.errors import HoldfastError, NotFound, QueueFull, StoreDown, Unconfirmed
from holdfast.ids import TurnId
from holdfast.operations.messages import Messages
from holdfast.web import clients
from holdfast.web.answers import Refused
from holdfast.web.clients import Clients
from tests.engine.world import until

ONE, OTHER = TurnId("one"), TurnId("other")


class Wire:
    """A connection of which only matters whether it is there."""

    lost = False


class Ledger:
    """Messages that write down whose answers were read."""

    def __init__(self) -> None:
        self.heard_of: list[TurnId] = []

    async def heard(self, turn_ids: Sequence[TurnId]) -> None:
        self.heard_of += turn_ids


async def serve(known: Clients, turn_id: TurnId, wire: Wire, ledger: Ledger | None = None) -> Any:
    async def made() -> Response:
        return Response()

    response = await known.served(cast("Messages", ledger or Ledger()), turn_id, cast("Any", wire), made())
    return response.background


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (QueueFull("full"), True),
        (StoreDown("away"), True),
        (Refused(409, "previous_in_flight", "wait"), True),
        (Unconfirmed("lost in a commit"), False),
        (Refused(400, "bad_json", "no"), False),
        (NotFound("no such session"), False),
    ],
)
async def test_a_try_behind_a_refusal_is_new_once(error: HoldfastError, counts: bool) -> None:
    """Only what the client sends again by itself counts, and only where nothing can have been accepted."""
    known = Clients(asyncio.Event())
    with pytest.raises(HoldfastError), known.accepting(known.trying("d", 0)):
        raise error
    assert not known.trying("e", 1).refused
    assert [known.trying("d", 1).refused for _ in range(2)] == [counts, False]


async def test_a_retry_that_is_refused_is_new_only_if_it_was_before() -> None:
    """Of a later try it is not known whether the one before it was accepted."""
    known = Clients(asyncio.Event())
    for refused in (False, True):
        with pytest.raises(StoreDown), known.accepting(Try(digest="d", number=1, refused=refused)):
            raise StoreDown("away")
        assert known.trying("d", 2).refused is refused


async def test_a_refusal_is_forgotten_when_its_client_must_have_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "REFUSED_S", -1.0)
    known = Clients(asyncio.Event())
    with pytest.raises(StoreDown), known.accepting(known.trying("d", 0)):
        raise StoreDown("away")
    assert not known.trying("d", 1).refused


async def test_a_turn_is_attended_while_one_of_its_clients_is_there() -> None:
    known, first, second = Clients(asyncio.Event()), Wire(), Wire()
    await serve(known, ONE, first)
    sending = await serve(known, ONE, second)
    await serve(known, OTHER, Wire())
    first.lost = True
    assert known.trying("d", 1).attended == {ONE, OTHER}
    sending.ended(whole=False)
    assert known.trying("d", 1).attended == {OTHER}


async def test_a_client_that_is_refused_behind_the_acceptance_does_not_wait_any_more() -> None:
    known = Clients(asyncio.Event())

    async def failing() -> Response:
        raise StoreDown("away")

    with pytest.raises(StoreDown):
        await known.served(cast("Messages", Ledger()), ONE, cast("Any", Wire()), failing())
    assert not known.trying("d", 1).attended


async def test_only_a_client_that_stays_has_read_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "HEARD_AFTER_S", 0.05)
    known, ledger, wires = Clients(asyncio.Event()), Ledger(), [Wire() for _ in range(4)]
    left, leaving, cut, stays = [await serve(known, TurnId(str(nth)), wire, ledger) for nth, wire in enumerate(wires)]
    wires[0].lost = True
    await left()
    await leaving()
    wires[1].lost = True
    cut.ended(whole=False)
    await stays()
    assert known.trying("d", 1).attended == {"3"}

    async def heard() -> bool:
        return bool(ledger.heard_of)

    await until(heard)
    assert ledger.heard_of == ["3"]
    assert not known.trying("d", 1).attended


async def test_a_gateway_that_closes_writes_down_at_once_what_was_read() -> None:
    closing, ledger = asyncio.Event(), Ledger()
    known = Clients(closing)
    await (await serve(known, ONE, Wire(), ledger))()
    closing.set()

    async def heard() -> bool:
        return ledger.heard_of == [ONE]

    await until(heard)
