"""The suite itself: a platform that breaks its contract does not pass it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from holdfast.channels.chat.account import ChatKind
from holdfast.channels.chat.port import Batch, ChatMessage, Outgoing, Place
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.testing.chat import world
from holdfast.testing.chat.cases import CASES
from holdfast.testing.chat.world import World
from tests import scratch
from tests.channels.chat.platform import ScriptedPlatform
from tests.channels.chat.test_conformance import TEXT, THERE, ScriptedSettings, ScriptedSide, opened


def _as_it_is(error: Exception) -> Exception:
    return error


def _same(message: ChatMessage) -> ChatMessage:
    return message


@dataclass
class FaultyPlatform(ScriptedPlatform):
    """Raises other errors, reports other messages, or tells nothing twice."""

    told_as: Callable[[Exception], Exception] = _as_it_is
    reported_as: Callable[[ChatMessage], ChatMessage] = _same
    reports_once: bool = False

    async def send(self, place: Place, message: Outgoing, key: str) -> str:
        try:
            return await super().send(place, message, key)
        except Exception as error:
            raise self.told_as(error) from error

    async def listen(self, position: str | None) -> AsyncGenerator[Batch]:
        async with contextlib.aclosing(super().listen(position)) as batches:
            async for each in batches:
                messages = [event for event in each.events if isinstance(event, ChatMessage)]
                if self.reports_once:
                    self.events.clear()
                yield Batch(
                    events=tuple(map(self.reported_as, messages)), position="0" if self.reports_once else each.position
                )


def _unavailable(error: Exception) -> Exception:
    return Unavailable(str(error))


def _unknown(error: Exception) -> Exception:
    return OutcomeUnknown(str(error))


def _untranslated(error: Exception) -> Exception:
    return ConnectionResetError(str(error))


def _renumbered() -> Callable[[ChatMessage], ChatMessage]:
    numbers = iter(range(1_000_000))
    return lambda message: msgspec.structs.replace(message, message_id=f"n{next(numbers)}")


def _without_bots(message: ChatMessage) -> ChatMessage:
    return msgspec.structs.replace(message, sender=msgspec.structs.replace(message.sender, is_bot=False))


def _addressed(message: ChatMessage) -> ChatMessage:
    return msgspec.structs.replace(message, addresses_bot=True)


FAULTS = {
    "a_platform_that_wants_a_pause_gets_exactly_that": FaultyPlatform(told_as=_unavailable),
    "what_may_have_arrived_is_repeated_once_with_a_label": FaultyPlatform(told_as=_unavailable),
    "what_a_platform_did_not_take_is_sent_again": FaultyPlatform(told_as=_unknown),
    "a_chat_that_is_closed_for_good_is_not_tried_again": FaultyPlatform(told_as=_unavailable),
    "a_file_is_sent_where_the_platform_takes_files": FaultyPlatform(told_as=_untranslated, fails={"send": [Rejected("no")]}),
    "what_is_reported_twice_is_answered_once": FaultyPlatform(reported_as=_renumbered()),
    "what_another_bot_writes_is_not_answered": FaultyPlatform(reported_as=_without_bots),
    "in_a_group_only_what_mentions_the_account_is_answered": FaultyPlatform(reported_as=_addressed),
    "what_did_not_become_durable_is_reported_again": FaultyPlatform(reports_once=True),
}


@contextlib.asynccontextmanager
async def played(platform: ScriptedPlatform, home: Path) -> AsyncIterator[World]:
    THERE[id(platform)] = platform
    platform.size = TEXT.message_size or platform.size
    scratch.furnish(home)
    kind = ChatKind(name="scripted", settings=ScriptedSettings, capabilities=TEXT, open=opened)
    yield World(kind=kind, far=ScriptedSide(platform, {"number": id(platform)}), home=home)
    del THERE[id(platform)]


@pytest.mark.parametrize("name", FAULTS)
async def test_a_faulty_platform_fails(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "DEADLINE_S", 1.5)
    (case,) = [each for each in CASES if each.__name__ == name]
    async with played(FAULTS[name], tmp_path) as here:
        with pytest.raises(AssertionError):
            await case(here)


async def test_an_error_that_is_not_translated_is_named(tmp_path: Path) -> None:
    platform = FaultyPlatform(told_as=_untranslated, fails={"send": [Rejected("no")]})
    async with played(platform, tmp_path) as here:
        with pytest.raises(AssertionError, match="send raised ConnectionResetError: no; a platform raises Rejected"):
            await _write(here)


async def _write(here: World) -> None:
    async with here.gateway() as gateway:
        await here.far.write("hello")
        await world.until(lambda: gateway.platform.of("send"))
