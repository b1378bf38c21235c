"""What comes in: a message from any channel, and the receipt that says it is durable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.core.chats import Consumed
from holdfast.core.keys import LOCAL
from holdfast.core.resets import Reset
from holdfast.core.retries import Try
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode, TurnState
from holdfast.ids import SessionId, TurnId

# Past this a session is being flooded, not talked to.
QUEUE_MAX = 100


class Busy(StrEnum):
    """What becomes of a message that arrives while an earlier one of its session is in flight."""

    QUEUE = "queue"
    INTERRUPT = "interrupt"
    STEER = "steer"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture that came with a message."""

    media_type: str
    data: bytes


class Speaker(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Something that a client says was said before its message."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a polled channel has been read; it moves with the message it belongs to."""

    channel: str
    position: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """What makes a request one that is done once, however often it is sent."""

    key: str | None
    body_hash: str
    cursor: Cursor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One message, already parsed and authorised by its channel.

    `conversation` is the key of its session, unless the inbox finds that the chat `continues` another one.  A sender who
    `names_session` chose the session itself, so that nothing else is continued.  `is_operator` says that the operator wrote
    it, who alone may give permission.  `dedupe_key` is scoped by the channel; without it a repeat is a new turn,
    unless `tried` says which turns it may belong to.
    `sent_as` is what its sender calls it, who finds it in the journal by that.
    `busy` and `reset` are what the operator chose, unless the message says otherwise.
    A turn with a `parent_turn_id` works for that turn, and is cancelled with it.
    `delivers_later` and `reply_to` belong to this turn alone; the session's earlier channel does not matter.
    `prior` is what was said before according to the client, which keeps the conversation itself.  `request` is what the
    client wants to read again with the turn.  A `verbatim` message is its own answer: no agent looks at it.
    `consumed` are the events of a chat that it is made of, which are removed with its acceptance.  `sent_at` is when it was
    sent, where that was long ago.
    """

    conversation: str
    text: str
    channel: str
    owner: str = LOCAL
    source: Source = field(default_factory=Source)
    dedupe_key: str | None = None
    tried: Try | None = None
    sent_as: str | None = None
    mode: Mode = Mode.CONVERSATION
    delivers_later: bool = True
    reply_to: str | None = None
    one_shot: bool = False
    remembers: bool = True
    cursor: Cursor | None = None
    busy: Busy | None = None
    reset: Reset | None = None
    images: tuple[Image, ...] = ()
    parent_turn_id: TurnId | None = None
    prior: tuple[Prior, ...] = ()
    request: Mapping[str, object] = field(default_factory=dict[str, object])
    verbatim: bool = False
    consumed: Consumed | None = None
    sent_at: int = 0
    continues: str | None = None
    names_session: bool = False
    is_operator: bool = False

    @property
    def session_key(self) -> str:
        """The key of the session that takes it."""
        return self.continues or self.conversation

    @property
    def size(self) -> int:
        """How many bytes of a store it takes, beside what Holdfast adds."""
        texts = [self.text, *(each.text for each in self.prior)]
        sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts] + [len(each.data) for each in self.images]
        return sum(sizes) + (len(json.dumps(self.request)) if self.request else 0)

    def once(self) -> Once:
        """Return what tells this message from every other, for what is done without making it a turn."""
        return Once(key=self.dedupe_key, body_hash=self.body_hash(), cursor=self.cursor)

    def body_hash(self) -> str:
        """Return the digest that tells a repeated message from another one under the same key."""
        # With its length the conversation cannot run into the text; half a surrogate pair is text for a hash.
        body = f"{len(self.conversation)}\n{self.conversation}\n{self.text}"
        digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
        if self.prior or self.request:
            more = [digest, [[each.speaker, each.text] for each in self.prior], self.request]
            digest = hashlib.sha256(json.dumps(more, sort_keys=True).encode()).hexdigest()
        if not self.images:
            return digest
        # Digests have one length, so that no text and no picture can pass for another.
        parts = (
            hashlib.sha256(part).hexdigest() for image in self.images for part in (image.media_type.encode(), image.data)
        )
        return hashlib.sha256((digest + "".join(parts)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a message is durable.  `duplicate` says that it had been accepted before.

    `superseded` are the turns that made way for it.  A command is answered at once: `reply` is that answer, and there
    may be no turn to wait for.
    """

    turn_id: TurnId
    session_id: SessionId
    state: TurnState
    accepted_at: int
    duplicate: bool = False
    superseded: tuple[TurnId, ...] = ()
    reply: str | None = None
