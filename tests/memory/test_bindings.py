"""Bindings: each debt finds its own creditor, opened once and closed once, and never another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.core.segments import Segment, SpokenMessage
from holdfast.core.sessions import Session
from holdfast.memory import bindings
from holdfast.memory.bindings import MemoryBindings
from holdfast.memory.provider import Provider


class Named(Provider):
    """Counts how often it is closed."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.closed = 0

    async def commit(self, session: Session, segment: Segment, messages: Sequence[SpokenMessage]) -> str:
        return "kept"

    async def close(self) -> None:
        self.closed += 1


class Stubborn(Named):
    """Does not let itself be closed."""

    def __init__(self, owner: str, *, hangs: bool) -> None:
        super().__init__(owner)
        self.hangs = hangs

    async def close(self) -> None:
        await super().close()
        if self.hangs:
            await asyncio.Event().wait()
        raise RuntimeError("not now")


async def test_an_earlier_binding_is_opened_once_and_only_when_it_is_asked_for() -> None:
    """M3: what is owed to an earlier provider is that one's, and today's is not opened again."""
    opened: list[Named] = []

    def again(owner: str) -> Named:
        opened.append(Named(owner))
        return opened[-1]

    today = Named("builtin")
    found = MemoryBindings(today, again)
    assert (found.current, found.of("builtin")) == (today, today)
    assert opened == []
    before = found.of("http:http://127.0.0.1:1")
    assert before is found.of("http:http://127.0.0.1:1")
    assert [before] == opened
    await found.close()
    await found.close()
    assert [each.closed for each in (today, *opened)] == [1, 1]
    assert found.current is None


async def test_whoever_answers_under_another_name_gets_nothing() -> None:
    """M3: a provider that calls itself something else than the debt does is not whom it is owed to."""
    stranger = Named("elephant:b")
    found = MemoryBindings(None, lambda _owner: stranger)
    assert found.of("elephant:a") is None
    assert found.of("elephant:b") is stranger
    await found.close()
    assert stranger.closed == 1, "what was opened is closed once, whoever it is"


async def test_nobody_is_known_where_nobody_was() -> None:
    asked: list[str] = []

    def none(owner: str) -> None:
        asked.append(owner)

    found = MemoryBindings(None, none)
    assert [found.current, found.of("gone"), found.of("gone")] == [None, None, None]
    assert asked == ["gone"], "a provider that cannot be opened is not tried at every look"
    assert MemoryBindings(None).of("builtin") is None
    await found.close()


@pytest.mark.parametrize("hangs", [True, False])
async def test_one_that_cannot_be_closed_keeps_none_of_the_others_open(
    hangs: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """M8: a shutdown waits for no provider for ever."""
    monkeypatch.setattr(bindings, "CLOSE_TIMEOUT_S", 0.05)
    other = Named("b")
    found = MemoryBindings(Stubborn("a", hangs=hangs), {"b": other}.get)
    assert found.of("b") is other
    await found.close()
    assert other.closed == 1
    assert "the memory provider a could not be closed" in caplog.text
