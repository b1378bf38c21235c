"""The binding: the one place where a request to the API becomes a message, whichever route it came by.

Once its response is closed nothing can reach a client of the API, so no such message ever promises to deliver later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.channels.openai.content import TurnInput
from holdfast.core.intake import Busy, Inbound
from holdfast.core.retries import Try
from holdfast.core.sessions import Source
from holdfast.core.turns import Mode

CHANNEL = "api"
# Conversations that go on from response to response.
RESPONSES = "responses"
_DIGEST_CHARS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCaller:
    """Who asks, and what the request is known by: its `key`, where it may come again, else a unique name.

    `tried` is what a request without a key is known by when its client repeats it.  A `repeated` request says of itself
    that it is a retry.  A client that `comes_back` after a failure gets the same turn again.
    """

    endpoint: str
    owner: str
    unique: str
    key: str | None = None
    user: str = ""
    tried: Try | None = None
    repeated: bool = False
    comes_back: bool = False

    def once(self, session: str = "") -> str | None:
        """Return what makes a repeat of the request known: the same key elsewhere is another one."""
        return ":".join(map(_escaped, (self.endpoint, self.owner, session, self.key))) if self.key else None

    def place(self, prefix: str) -> str:
        """Return the name of a conversation of the request's own, the same one when the request comes again."""
        once = self.once()
        return f"{prefix}{hashlib.sha256(once.encode()).hexdigest()[:_DIGEST_CHARS] if once else self.unique}"


def alone(caller: ApiCaller, found: TurnInput, request: Mapping[str, object], *, detached: bool = False) -> Inbound:
    """Return a message with a session of its own, which ends with its turn and is not remembered."""
    return _bound(caller, found, request, caller.place(f"{CHANNEL}:"), CHANNEL, detached=detached, one_shot=True)


def opening(caller: ApiCaller, found: TurnInput, request: Mapping[str, object], *, detached: bool = False) -> Inbound:
    """Return the first message of a conversation that goes on from response to response."""
    return _bound(caller, found, request, caller.place("resp_"), RESPONSES, detached=detached)


def following(
    caller: ApiCaller,
    found: TurnInput,
    request: Mapping[str, object],
    conversation: str,
    *,
    session: str,
    channel: str = CHANNEL,
    detached: bool = False,
    busy: Busy | None = None,
) -> Inbound:
    """Return the next message of a conversation; `session` is the name by which the client knows it."""
    return _bound(caller, found, request, conversation, channel, session=session, detached=detached, busy=busy)


def _bound(
    caller: ApiCaller,
    found: TurnInput,
    request: Mapping[str, object],
    conversation: str,
    channel: str,
    *,
    detached: bool,
    session: str = "",
    one_shot: bool = False,
    busy: Busy | None = None,
) -> Inbound:
    return Inbound(
        conversation=conversation,
        text=found.text,
        channel=channel,
        owner=caller.owner,
        source=Source(chat_type=CHANNEL, user=caller.user),
        dedupe_key=caller.once(session),
        tried=caller.tried,
        mode=Mode.DETACHED if detached else Mode.SYNCHRONOUS,
        delivers_later=False,
        one_shot=one_shot,
        remembers=not one_shot,
        busy=busy,
        images=found.images,
        prior=found.prior,
        request=request,
    )


def _escaped(part: str | None) -> str:
    # So that one client's key cannot be made to equal another's.
    return (part or "").replace("%", "%25").replace(":", "%3A")
