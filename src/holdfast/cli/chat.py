"""`holdfast chat`: a conversation in the terminal, where a person can write while the agent answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Generator

import click
from rich.text import Text

from holdfast.cli import cards
from holdfast.cli.frame import Frame, console, run_async, tilde, visible
from holdfast.cli.narration import Narrator
from holdfast.cli.screen import Screen, TerminalScreen, screen
from holdfast.cli.sessions import print_item
from holdfast.core import commands
from holdfast.core.events import TurnCompleted
from holdfast.core.journal import Entry, settles
from holdfast.core.questions import About
from holdfast.core.transcript import Role
from holdfast.errors import IllegalMove, Rejected, Unavailable
from holdfast.ids import SessionId, TurnId
from holdfast.operations.approvals import ApprovalView
from holdfast.operations.conversation import SessionView
from holdfast.operations.services import Services
from holdfast.operations.sessions import Message, Opening, looks_like_id
from holdfast.operations.turns import Answer

CHANNEL = "terminal"
DEFAULT_KEY = "terminal"
_SHOWN_AT_START = 6
_GOES_ON = "The answer goes on without you, and is here when you come back."
_FINISHES = "The answer is finished first, for no other gateway runs; Ctrl-C ends it sooner."


@click.command()
@click.option(
    "--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue: its key or id."
)
@click.pass_obj
@run_async
async def chat(frame: Frame, key: str) -> None:
    """Chat in the terminal.  Write on while it answers; Ctrl-C stops an answer, Ctrl-D leaves."""
    async with frame.services() as services:
        session = await open_session(services, key)
        model = f" · {session.chosen_model}" if session.chosen_model else ""
        where = visible(f" · session {key}{model} · {tilde(frame.home)} · Ctrl-D leaves")
        console.print(Text.assemble(("Holdfast", "bold"), (where, "dim")))
        transcript = await services.sessions.transcript(session.id)
        question = await _open_question(services, session.id)
        for item in transcript.items[-_SHOWN_AT_START:]:
            if question is None or item.role is not Role.QUESTION or item.turn_id != question.turn_id:
                print_item(item)
        with screen() as page:
            await Chat(services, page, session).run(transcript.seq, question)
        console.print()


async def open_session(services: Services, name: str) -> SessionView:
    """Return the session with an id, or the open one of a key; a new one if there is none."""
    if looks_like_id(name):
        return await services.sessions.get(SessionId(name))
    return await services.sessions.open(Opening(key=name, channel=CHANNEL))


async def _open_question(services: Services, session_id: SessionId) -> ApprovalView | None:
    """Return the question that a turn of a session waits for."""
    found = (await services.approvals.list(session_id=session_id, limit=1)).items
    return found[0] if found else None


class Chat:
    """One person at one screen.  Everything that happens in the session is shown, also if someone else caused it."""

    def __init__(self, services: Services, page: Screen, session: SessionView) -> None:
        self._services = services
        self._page = page
        self._session = session
        self._narrator = Narrator(page, is_mine=lambda turn_id: turn_id in self._mine)
        # Our messages, and the turns in which those are answered that are not answered yet.
        self._mine: set[TurnId] = set()
        self._awaited: set[TurnId] = set()
        # Held while a message is on its way, so that its entries are not told before we know that they are ours.
        self._sending = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stopping: set[asyncio.Task[None]] = set()

    async def run(self, after: int, question: ApprovalView | None) -> None:
        """Talk until the person leaves."""
        if question:
            self._narrator.ask(question)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._follow(self._session.id, after)
                with self._interruptible():
                    await self._converse()
                self._follower.cancel()
        except BaseExceptionGroup as errors:
            # What the gateway did, or what the person wants: one thing, which its family answers for.
            raise errors.exceptions[0] from None

    def _follow(self, session_id: SessionId, after: int) -> None:
        self._follower = self._group.create_task(self._tell(session_id, after), name="follower")

    async def _tell(self, session_id: SessionId, after: int) -> None:
        async with contextlib.aclosing(self._services.sessions.follow(session_id, after)) as entries:
            async for entry in entries:
                async with self._sending:
                    self._hear(entry)

    def _hear(self, entry: Entry) -> None:
        host = entry.event.joined if isinstance(entry.event, TurnCompleted) else None
        if host and entry.turn_id in self._awaited:
            # The message became part of the turn that was running, and is answered there.
            self._awaited = self._awaited - {entry.turn_id} | ({host} if host in self._narrator.live else set())
        self._narrator.tell(entry)
        if settles(entry.event):
            self._awaited.discard(entry.turn_id)
        self._changed.set()

    async def _converse(self) -> None:
        while True:
            await self._turn_to_speak()
            if (text := await self._page.line()) is None:
                break
            if text.strip():
                await self._take(text)
        await self._say_farewell()

    async def _turn_to_speak(self) -> None:
        """Wait until the next line may be read: at once on a terminal, in a pipe after the answer to the last one."""
        while not self._page.is_live and self._awaited and not self._narrator.question:
            self._changed.clear()
            await self._changed.wait()

    async def _take(self, text: str) -> None:
        question = self._narrator.question
        try:
            if not question or commands.parse(text) or not await self._reply(question, text):
                await self._send(text)
        except (Rejected, Unavailable) as error:
            self._page.print(Text(visible(str(error)), "magenta"))

    async def _reply(self, question: ApprovalView, text: str) -> bool:
        """Answer a question; False if nothing waits for the answer any more, so that it should be sent as a message."""
        async with self._sending:
            self._narrator.answered()
            try:
                answer = Answer(text=cards.reply(question, text), question_id=question.question_id)
                await self._services.turns.answer(question.turn_id, answer)
            except IllegalMove:
                if question.about is not About.ANSWER:
                    raise
                return False
            self._awaited.add(question.turn_id)
            return True

    async def _send(self, text: str) -> None:
        async with self._sending:
            receipt = await self._services.sessions.send(self._session.id, Message(text=text))
            if receipt.turn_id:
                self._mine.add(receipt.turn_id)
                self._awaited.add(receipt.turn_id)
            if receipt.reply is not None:
                self._page.print(Text(visible(receipt.reply), "dim"))
            if receipt.session_id and receipt.session_id != self._session.id:
                await self._move(receipt.session_id, is_new=bool(receipt.turn_id))

    async def _move(self, session_id: SessionId, *, is_new: bool) -> None:
        """Go on in another session: one that a message has opened, or one that was resumed, whose end is shown."""
        self._follower.cancel()
        self._session = await self._services.sessions.get(session_id)
        self._narrator.live.clear()
        self._narrator.answered()
        self._follow(session_id, 0 if is_new else await self._show_end())

    async def _show_end(self) -> int:
        """Show the last of what was said in the session, and return where to follow it from."""
        transcript = await self._services.sessions.transcript(self._session.id)
        for item in transcript.items[-_SHOWN_AT_START:]:
            with console.capture() as shown:
                print_item(item)
            self._page.print(Text.from_ansi(shown.get().rstrip("\n")))
        if question := await _open_question(self._services, self._session.id):
            self._narrator.ask(question)
        return transcript.seq

    async def _say_farewell(self) -> None:
        if question := self._narrator.question:
            self._page.print(Text(f"It waits for you: {cards.how_to_answer(question)}", "dim"))
        elif self._narrator.live:
            is_own = (await self._services.gateway.health()).pid == os.getpid()
            self._page.print(Text(_FINISHES if is_own else _GOES_ON, "dim"))

    @contextlib.contextmanager
    def _interruptible(self) -> Generator[None]:
        """Let Ctrl-C stop the running turn, or leave the chat if none runs."""
        loop, me, leaving = asyncio.get_running_loop(), asyncio.current_task(), False

        def interrupt() -> None:
            nonlocal leaving
            if self._narrator.live or self._awaited:
                self._stop()
            elif not (isinstance(self._page, TerminalScreen) and self._page.clear()) and me:
                leaving = True
                me.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            yield
        except asyncio.CancelledError:
            if leaving and me:
                me.uncancel()
                raise click.Abort from None
            raise
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _stop(self) -> None:
        for turn_id in list(self._narrator.live) or list(self._awaited):
            task = asyncio.create_task(self._cancel(turn_id))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _cancel(self, turn_id: TurnId) -> None:
        with contextlib.suppress(Rejected, Unavailable):
            await self._services.turns.cancel(turn_id)
