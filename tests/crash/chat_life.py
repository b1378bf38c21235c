"""Whole lives of a gateway that people write to, each in a process of its own, each cut short on command.

`python -m tests.crash.chat_life` forks a life for every line of its input, as `tests.crash.life` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agent.scripted import Ask, Line, Say, ScriptedAgent, UseTool
from holdfast.channels.chat import budget, status_line
from holdfast.channels.chat.account import ChatAccount
from holdfast.channels.chat.channel import ChatSurroundings, ask_in, at_work, homes_of
from holdfast.channels.chat.config import ChatSettings
from holdfast.channels.chat.receiver import Timing
from holdfast.clock import SystemClock
from holdfast.config import Config, GatewayConfig, SessionsConfig
from holdfast.core import joining
from holdfast.core.chats import ChatMessage, Member, Place, Pressed
from holdfast.core.delivery import REPEAT_LABEL
from holdfast.core.effects import Effect
from holdfast.core.events import ApprovalAnswered
from holdfast.core.keys import LOCAL
from holdfast.core.people import Choice
from holdfast.core.redaction import Redaction
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.inbox import Inbox
from holdfast.engine.tuning import Tuning
from holdfast.ids import new_node_id
from holdfast.ports import Assignment
from holdfast.store.audit import audit
from holdfast.store.migrations import migrate
from holdfast.store.opening import store_path
from holdfast.store.store import Store
from tests.crash.far_side import CAN, DurablePlatform, Seen
from tests.crash.forking import serve
from tests.crash.life import Fuse, FusedDatabase, Life, lived, say
from tests.crash.world import World, dump, query, until

ACCOUNT = "tested"
ANN, EVE = Member(id="7", name="Ann"), Member(id="66", name="Eve")
CHAT, STRANGE, HOME = "1", "66", "home"
TIMING = Timing(taken_first_ms=30, look_again_ms=60, back_off_first_ms=5, lease_ms=20)
TUNING = Tuning(batch_ms=1, poll_ms=500)

WORDS = "choose"
PASTE = ("x" * joining.PART_UNITS, "the end")
PLEASE = "let me in"
ASKS = "asks to be let in"
QUESTION, CHOICES = "which?", ("blue", "red")
ANSWERS = {WORDS: "So blue it is.", "\n".join(PASTE): "That was long.", PLEASE: "Welcome."}
# How long the agent gives the chat to show something, which a death may have made impossible.
LOOK_MAX_S = 0.3
_AT_REST = """
    SELECT NOT EXISTS (SELECT 1 FROM chat_inbox)
       AND NOT EXISTS (SELECT 1 FROM turns WHERE state NOT IN ('completed', 'failed', 'cancelled', 'interrupted'))
       AND NOT EXISTS (SELECT 1 FROM deliveries
                        WHERE state IN ('pending', 'sending', 'retry') OR (state = 'unknown' AND repeats = 0))
       AND NOT EXISTS (SELECT 1 FROM status_lines WHERE state <> 'closed')
       AND NOT EXISTS (SELECT 1 FROM cards WHERE closed_at IS NULL)
"""
_LOST = "SELECT 1 FROM deliveries WHERE state = 'unknown' AND repeats = 1 AND instr(text, :words) > 0"
_OPEN = "SELECT turn_id, id FROM questions WHERE answer IS NULL"
_REPORTED = {
    "turns": "SELECT id, state FROM turns ORDER BY accepted_at, ordinal",
    "messages": "SELECT chat_id, message_id, turn_id FROM chat_messages ORDER BY chat_id, message_id",
    "deliveries": "SELECT id, turn_id, part, state, repeats, receipt, text, target FROM deliveries ORDER BY id",
    "staged": "SELECT number FROM chat_inbox",
    "questions": "SELECT answer FROM questions",
}


def quicken() -> None:
    """Let what waits for a person or spares a platform do so briefly."""
    joining.WINDOW_MS, joining.LONG_WINDOW_MS = 10, 20
    status_line.SHOW_AFTER_MS, status_line.GATHER_MS, status_line.LOOK_MS = 0, 2, 50
    budget.EDIT_MS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """A tool that waits until the chat shows something."""

    name: str
    far: DurablePlatform
    text: str
    effect: Effect = Effect.PURE

    async def run(self, args: Mapping[str, object], key: str) -> str:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_MAX_S):
                await self.far.shows(CHAT, lambda each: each.text == self.text)
        return "looked"


def agent(far: DurablePlatform) -> ScriptedAgent:
    chosen: Sequence[Line] = (
        UseTool(Looking(name="begun", far=far, text="Working: begun…")),
        UseTool(Looking(name="edited", far=far, text="Working: edited…")),
        Ask(QUESTION, lambda answer: f"So {answer} ", CHOICES),
        UseTool(Looking(name="grown", far=far, text="So blue")),
        Say("it "),
        UseTool(Looking(name="further", far=far, text="So blue it")),
        Say("is."),
    )

    def script(work: Assignment) -> Sequence[Line]:
        if work.message.endswith(WORDS):
            return chosen
        return [Say(next(answer for said, answer in ANSWERS.items() if work.message.endswith(said)))]

    return ScriptedAgent(script)


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Two people who do one thing after the other, each when they see what the last has led to.

    What they have done is on the far side, so that after a death they go on where they were.
    """

    far: DurablePlatform
    store: Store

    async def live(self) -> None:
        await self.far.listens.wait()
        await self._write(ANN, CHAT, WORDS)
        await self._press(CHAT, QUESTION, CHOICES[0], self._answer_elsewhere)
        await self._see(CHAT, ANSWERS[WORDS])
        await self._write(ANN, CHAT, *PASTE)
        await self._see(CHAT, ANSWERS["\n".join(PASTE)])
        await self._write(EVE, STRANGE, PLEASE)
        await self._press(HOME, ASKS, "Trusted", self._let_in_elsewhere)
        await self._see(STRANGE, ANSWERS[PLEASE])
        await until(self.store, self._at_rest, "everything at rest")

    async def _write(self, sender: Member, chat: str, *texts: str) -> None:
        written = {each.text for each in self.far.done() if isinstance(each, ChatMessage)}
        if texts[0] not in written:
            now, place = SystemClock().now_ms(), Place(chat_id=chat)
            self.far.report(
                *(
                    ChatMessage(place=place, sender=sender, message_id=f"{texts[0][:9]}-{number}", text=text, sent_at=now)
                    for number, text in enumerate(texts)
                )
            )

    async def _press(self, chat: str, words: str, label: str, elsewhere: Callable[[], Awaitable[None]]) -> None:
        pressed = {each.place.chat_id for each in self.far.done() if isinstance(each, Pressed)}
        if chat in pressed:
            return
        message = await self._look(chat, words, lambda each: words in each.text and bool(each.buttons))
        if message is None:
            await elsewhere()
            return
        value = next(each.value for each in message.buttons if each.label == label)
        place = Place(chat_id=chat)
        self.far.report(Pressed(place=place, sender=ANN, message_id=message.id, press_id=f"press {chat}", value=value))

    async def _see(self, chat: str, text: str) -> None:
        await self._look(chat, text, lambda each: each.text in (text, f"{REPEAT_LABEL} {text}"))

    async def _look(self, chat: str, words: str, is_it: Callable[[Seen], bool]) -> Seen | None:
        """Return a message once it is shown; None where its sender died twice, so that it may never be."""

        async def is_lost() -> bool:
            return bool(await query(self.store.database, _LOST, words=words))

        shown = asyncio.create_task(self.far.shows(chat, is_it))
        lost = asyncio.create_task(until(self.store, is_lost, f"{words} in {chat}"))
        try:
            await asyncio.wait((shown, lost), return_when=asyncio.FIRST_COMPLETED)
            if shown.done():
                return shown.result()
            await lost
            return None
        finally:
            shown.cancel()
            lost.cancel()

    async def _answer_elsewhere(self) -> None:
        """Answer the question as on the page, where the chat has not shown it."""
        for turn_id, question_id in await query(self.store.database, _OPEN):
            given = ApprovalAnswered(question_id=question_id, text=CHOICES[0])
            await self.store.turns.answer(turn_id, given, SystemClock().now_ms())

    async def _let_in_elsewhere(self) -> None:
        """Let the stranger in as on the page, where the home chat has not shown that they ask."""
        for each in await self.store.people.pairings():
            await self.store.people.decide(each.id, Choice.TRUSTED, LOCAL, SystemClock().now_ms())

    async def _at_rest(self) -> bool:
        ((at_rest,),) = await query(self.store.database, _AT_REST)
        return bool(at_rest) and self.far.confirmed() == len(self.far.done())


async def live(life: Life) -> None:
    """Live on from what an earlier life has left; a life that is not killed is lived once more."""
    await live_once(life, Fuse(life.nth, life.when))
    if life.nth is None and life.case == "chat":
        await live_once(life, Fuse(None, "before"))


async def live_once(life: Life, fuse: Fuse) -> None:
    home = Path(life.home)
    world = World(home / "world")
    database = FusedDatabase(store_path(home), fuse)
    await migrate(database, SystemClock().now_ms())
    store = Store(database)
    say("left", json.dumps(await audit(database)))
    if life.case == "birth":
        await store.close()
        return
    # Each life has its own lines of the world.
    world.note("born")
    far = DurablePlatform(world, fuse)
    await lived(engine(store, far), People(far=far, store=store).live())
    report = {**await describe(store), "points": fuse.points}
    await store.close()
    say("report", msgspec.json.encode(report).decode())


def engine(store: Store, far: DurablePlatform) -> Engine:
    clock, config = SystemClock(), Config(gateway=GatewayConfig(resume="auto"))
    node_id = new_node_id(clock.now_ms())
    inbox = Inbox(store, config.gateway, SessionsConfig(), Redaction(), clock)
    settings = ChatSettings(allow=(ANN.id,), home=HOME, stream="edit")
    account = ChatAccount(name=ACCOUNT, kind="durable", settings=settings, capabilities=CAN, platform=far)
    around = ChatSurroundings(store=store, clock=clock, node_id=node_id, accept=inbox.accept, timing=TIMING)
    chats = at_work({ACCOUNT: account}, around)
    return Engine(
        Parts(
            store=store,
            agent=agent(far),
            carriers={name: chat.carrier for name, chat in chats.items()},
            components={name: chat.run for name, chat in chats.items()},
            ask_operator=ask_in(homes_of(chats)),
            config=config,
            tuning=TUNING,
            node_id=node_id,
        )
    )


async def describe(store: Store) -> dict[str, Any]:
    """Return what is left of all that people did, and every row of the store but the lease, which each start takes."""
    rows = await dump(store.database)
    del rows["channel_accounts"]
    found = {name: await query(store.database, sql) for name, sql in _REPORTED.items()}
    return {**found, "audit": await audit(store.database), "rows": rows}


if __name__ == "__main__":
    quicken()
    serve(Life, live)
