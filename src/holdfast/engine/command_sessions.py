"""The commands /sessions and /resume NAME: a person's conversations, and going on with one of them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.clock import Clock
from holdfast.core.delegation import BACKGROUND
from holdfast.core.delegation import CHANNEL as DELEGATE
from holdfast.core.intake import Inbound
from holdfast.core.notes import ago
from holdfast.core.sessions import Glance, Session, SessionState
from holdfast.errors import NotFound, Rejected
from holdfast.ids import SessionId, new_id, new_session_id
from holdfast.store.store import Store

SHOWN_MAX = 15
SEARCHED_MAX = 200
_PAGE = 50
LEFT_FOR_ANOTHER = "resumed_another"
_NOT_TALKED_TO = frozenset({DELEGATE, BACKGROUND})


async def opened(store: Store, message: Inbound, now_ms: int) -> Session:
    """Return the open session of a chat, begun empty if need be."""
    id_, key = new_session_id(now_ms), message.session_key
    return await store.sessions.open(message.owner, key, message.channel, id_, now_ms, message.source)


class SessionCommands:
    """Lists the conversations of a person, and lets a chat go on with one."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def listed(self, session: Session | None, owner: str) -> str:
        """Return the conversations of a person, last used first."""
        found = await self._recent(owner, SHOWN_MAX)
        if not found:
            return "You have no conversations yet."
        lines = [f"{number}. {self._line(each, session)}" for number, each in enumerate(found, 1)]
        return "\n".join([*lines, "Go on with one here: /resume NUMBER, or a part of its name."])

    async def go_on(self, session: Session | None, message: Inbound, wanted: str) -> tuple[Session, str]:
        """Go on with another conversation where the message was written.  Raises `Rejected` where it is not one."""
        found = await self._find(message.owner, wanted)
        target, now = found.session, self._clock.now_ms()
        if session is not None and session.id == target.id:
            raise Rejected("this is that conversation")
        if target.state is not SessionState.OPEN:
            copy = self._copy(target, message, now)
            made = await self._store.continuations.copy(target.id, copy, LEFT_FOR_ANOTHER, now, message.once())
            return made, f"Going on with “{found.label}” in a copy, because it was over.{await self._last(target)}"
        if message.names_session:
            # Its sender goes there.
            await self._store.intake.remember(message.once(), target.id, now)
        else:
            key = message.conversation
            await self._store.continuations.begin(message.owner, key, target.id, now, message.once())
        return target, f"Going on with “{found.label}” ({target.channel}). /new leaves it.{await self._last(target)}"

    async def _find(self, owner: str, wanted: str) -> Glance:
        """Return the conversation with a number of the list, an id, or a name."""
        if wanted.startswith("ses_"):
            return await self._of_id(owner, SessionId(wanted))
        found = await self._recent(owner, SEARCHED_MAX)
        if wanted.isdecimal() and 0 < int(wanted) <= len(found):
            return found[int(wanted) - 1]
        meant = _named(found, wanted)
        if not meant:
            raise NotFound(f"there is no conversation {wanted[:80]!r}; /sessions lists them")
        if len(meant) > 1:
            names = "\n".join(f"{number}. {self._line(found[number - 1], None)}" for number in meant[:SHOWN_MAX])
            raise Rejected(f"several conversations are called so; say which by its number:\n{names}")
        return found[meant[0] - 1]

    async def _of_id(self, owner: str, session_id: SessionId) -> Glance:
        glance = (await self._store.sessions.glances([session_id])).get(session_id)
        if glance is None or glance.session.owner != owner or not _is_talked_to(glance.session):
            raise NotFound(f"there is no conversation {session_id}")
        return glance

    async def _recent(self, owner: str, most: int) -> list[Glance]:
        """Return conversations, last used first, without those in which no person talks."""
        found: list[Session] = []
        before: tuple[int, str] | None = None
        for _ in range(SEARCHED_MAX // _PAGE):
            page = await self._store.sessions.list(owner, before, _PAGE, archived=False)
            found += [each for each in page if _is_talked_to(each)]
            if len(page) < _PAGE or len(found) >= most:
                break
            before = (page[-1].updated_at, page[-1].id)
        glances = await self._store.sessions.glances([each.id for each in found[:most]])
        return [glances[each.id] for each in found[:most] if each.id in glances]

    def _line(self, glance: Glance, here: Session | None) -> str:
        session = glance.session
        notes = [session.channel, f"{ago(self._clock.now_ms() - session.updated_at)} ago"]
        if here is not None and session.id == here.id:
            notes.append("this one")
        elif session.state is not SessionState.OPEN:
            notes.append("over")
        return f"“{glance.label}” ({', '.join(notes)})"

    def _copy(self, target: Session, message: Inbound, now_ms: int) -> Session:
        """Return the session in which one goes on that is over: that of the chat, or one of its own."""
        named = message.names_session
        return Session(
            id=new_session_id(now_ms),
            key=new_id("fork", now_ms) if named else message.conversation,
            channel=target.channel if named else message.channel,
            owner=message.owner,
            one_shot=False,
            created_at=now_ms,
            updated_at=now_ms,
            source=target.source if named else message.source,
            title=target.title,
        )

    async def _last(self, target: Session) -> str:
        last = await self._store.turns.last(target.id)
        return f" The last message was: “{_short(await self._store.turns.asked(last.id))}”" if last else ""


def _is_talked_to(session: Session) -> bool:
    return not session.one_shot and session.channel not in _NOT_TALKED_TO


def _named(found: Sequence[Glance], wanted: str) -> list[int]:
    """Return the numbers of those called so, else of those that begin with it, else of those with it in their names."""
    word = wanted.casefold()
    names = [(number, (each.label.casefold(), each.session.key.casefold())) for number, each in enumerate(found, 1)]
    exact = [number for number, of in names if word in of]
    begun = [number for number, of in names if any(name.startswith(word) for name in of)]
    return exact or begun or [number for number, (label, _) in names if word in label]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
