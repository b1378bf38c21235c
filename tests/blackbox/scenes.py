"""Scenes: a turn in each state that an end of its gateway can find it in, and each way in which a gateway ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from dataclasses import dataclass
from enum import StrEnum

from tests.blackbox.client import Client, Follower
from tests.blackbox.gateway import Gateway, until
from tests.blackbox.history import Receipt

# So long that no turn comes to its end by itself, and short enough to wait for where it must.
NEVER_S = 300
SOON_S = 3
SHORT_DRAIN_S = 0.3


class State(StrEnum):
    """Where a turn is when its gateway ends."""

    QUEUED = "queued behind another"
    ACCEPTED = "just accepted"
    STREAMING = "streaming"
    TOOL = "in a tool"
    EFFECT = "in an effectful tool"
    WAITING = "waiting for an answer"
    FINISHING = "about to finish"


class End(StrEnum):
    """How a gateway ends, or begins anew."""

    KILL = "SIGKILL"
    DRAIN = "SIGTERM with time enough"
    SHORT = "SIGTERM with a short drain"
    FORCE = "a second SIGTERM"
    RESTART = "holdfast restart"


CAUSES = {
    End.KILL: "crash",
    End.DRAIN: None,
    End.SHORT: "shutdown_timeout",
    End.FORCE: "shutdown_timeout",
    End.RESTART: "restart_timeout",
}
# How the note before the next message calls what cut the turn off.
NAMES = {"crash": "gateway interruption", "shutdown_timeout": "gateway shutdown", "restart_timeout": "gateway restart"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One session with the turn that matters, and the one before it where it waits behind another."""

    state: State
    session_id: str
    turn: Receipt
    follower: Follower
    blocker: Receipt | None = None


@dataclass(slots=True, kw_only=True)
class Stage:
    """A gateway with its client, on which scenes are set."""

    gateway: Gateway
    client: Client
    # How long turns take that are to be cut off.
    lasting_s: float
    via: int = 0
    _held: int | None = None

    async def set(self, *states: State) -> list[Scene]:
        """Bring a turn into each state; those that last only a moment are brought into it last."""
        fleeting = [state for state in states if state in (State.FINISHING, State.ACCEPTED)]
        if State.EFFECT in states:
            self._hold_notes()
        scenes = await asyncio.gather(*(self._bring(state) for state in states if state not in fleeting))
        return [*scenes, *[await self._bring(state) for state in fleeting]]

    async def _bring(self, state: State) -> Scene:
        session_id = await self.client.session(via=self.via)
        follower = self.client.follow(session_id, self.via)
        blocker = None
        match state:
            case State.QUEUED:
                blocker = await self.client.send(session_id, f"wait {self.lasting_s} seconds", self.via)
                await follower.saw("tool.started", blocker.id, "wait")
                turn = await self.client.send(session_id, "count to 3", self.via)
            case State.ACCEPTED:
                turn = await self.client.send(session_id, "count to 3", self.via)
            case State.STREAMING:
                turn = await self.client.send(session_id, f"count to {int(self.lasting_s / 0.025)}", self.via)
                await follower.saw("text", turn.id)
            case State.TOOL:
                turn = await self.client.send(session_id, f"wait {self.lasting_s} seconds", self.via)
                await follower.saw("tool.started", turn.id, "wait")
            case State.EFFECT:
                turn = await self.client.send(session_id, f"note: kept for {session_id}", self.via)
                await follower.saw("tool.started", turn.id, "keep_note")
            case State.WAITING:
                turn = await self.client.send(session_id, "ask me which colour", self.via)
                await self.client.comes_to(turn.id, "waiting", via=self.via)
            case State.FINISHING:
                turn = await self.client.send(session_id, "wait 0.2 seconds", self.via)
                await follower.saw("tool.finished", turn.id, "wait")
        return Scene(state=state, session_id=session_id, turn=turn, follower=follower, blocker=blocker)

    async def end(self, end: End) -> None:
        """End the gateway.  What was taking effect when it was cut off does so then, with nobody left to hear of it.

        Afterwards it is down, or back where the end itself brings it back.
        """
        position = len(self.gateway.log.read_text())
        match end:
            case End.KILL:
                await self.gateway.kill()
            case End.DRAIN:
                self.gateway.signal(signal.SIGTERM)
                await until(self._drains, "the gateway drains")
                self.release_notes()
            case End.SHORT:
                self.gateway.signal(signal.SIGTERM)
                await self.gateway.says("Stopped:", position)
            case End.FORCE:
                self.gateway.signal(signal.SIGTERM)
                await until(self._drains, "the gateway drains")
                self.gateway.signal(signal.SIGTERM)
                await self.gateway.says("Stopped:", position)
            case End.RESTART:
                restarting = asyncio.create_task(self.gateway.run("restart", "--timeout", str(SHORT_DRAIN_S)))
                await self.gateway.says("Restarting: ", position)
                await self.gateway.says("interrupted", position)
                self.release_notes()
                await restarting
        # A killed gateway cannot do anything any more.
        self.release_notes()
        if end in (End.DRAIN, End.SHORT, End.FORCE):
            # A second signal may come when everything is over and nobody listens for it any more.
            peaceful = {0, -signal.SIGTERM} if end is End.FORCE else {0}
            assert await self.gateway.ended() in peaceful, self.gateway.tail()

    async def _drains(self) -> bool:
        return await self.client.drains(self.via)

    def notes(self) -> list[str]:
        return self.gateway.notes.read_text().splitlines() if self.gateway.notes.exists() else []

    def _hold_notes(self) -> None:
        """Let whoever notes something wait in the middle of it: a file with a lease on it opens for no other writer."""
        self.gateway.notes.touch()
        self._held = os.open(self.gateway.notes, os.O_RDONLY)
        # The signal that somebody waits is one that does nothing.
        fcntl.fcntl(self._held, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(self._held, fcntl.F_SETLEASE, fcntl.F_RDLCK)

    def release_notes(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None
