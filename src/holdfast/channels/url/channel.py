"""The url channel: posts each delivery to the web address of its target.

A delivery has the same id at each try, so a receiver can drop one that it has.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from holdfast.channels.port import Capabilities, Channel, ChannelContext
from holdfast.channels.url.client import UrlClient
from holdfast.channels.url.render import body
from holdfast.channels.webhook.signatures import Unverified, standard_key
from holdfast.clock import Clock
from holdfast.config import SIGNING_PREFIX
from holdfast.core.delivery import Delivery
from holdfast.core.questions import Question
from holdfast.core.turns import Turn
from holdfast.egress import Egress, Guard
from holdfast.errors import ConfigInvalid

NAME = "url"
SECRET_MIN_BYTES = 24


@contextlib.asynccontextmanager
async def opened(context: ChannelContext) -> AsyncGenerator[Channel]:
    config = context.config.url
    egress = Egress(Guard(config.allow_hosts, setting="channels.url.allow_hosts", encrypted=True), config.timeout)
    try:
        carrier = UrlCarrier(egress, context.signing_secret, context.clock)
        yield Channel(capabilities=Capabilities(delivers_later=True), carrier=carrier)
    finally:
        await egress.close()


class UrlCarrier:
    """Posts deliveries to web addresses.  Raises `ConfigInvalid` for a secret that is too weak."""

    # Standard Webhooks ask a receiver to drop an id that it has seen.
    dedupes = True
    in_line = False
    takes_files = False

    def __init__(self, egress: Egress, secret: str, clock: Clock) -> None:
        self._client = UrlClient(egress, _checked(secret), clock)

    def check(self, target: str) -> None:
        self._client.check(_address(target))

    def split(self, text: str) -> Sequence[str]:
        return [text]

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:  # noqa: ARG002 - No person reads it.
        return ()

    async def send(self, sent: Delivery) -> str:
        self.check(sent.target)
        return await self._client.post(_address(sent.target), body(sent), key=sent.id)

    async def find(self, sent: Delivery) -> str | None:  # noqa: ARG002 - A web address has no way to ask.
        return None


def _address(target: str) -> str:
    return target.partition(":")[2]


def _checked(secret: str) -> str:
    try:
        key = standard_key(secret)
    except Unverified:
        raise ConfigInvalid(f"channels.url.secret: what follows {SIGNING_PREFIX} must be base64") from None
    if len(key) < SECRET_MIN_BYTES:
        raise ConfigInvalid(
            f"channels.url.secret: must hold {SECRET_MIN_BYTES} bytes or more; make one with `openssl rand -base64 32`, "
            f"and put {SIGNING_PREFIX} before it"
        )
    return secret
