"""The GitHub channel: each delivery becomes a comment on the issue or pull request of its target."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Sequence

from holdfast.channels.github.client import GithubClient, Issue
from holdfast.channels.github.render import SIZE, comment, is_comment_of, parts
from holdfast.channels.port import Capabilities, Channel, ChannelContext
from holdfast.clock import Clock
from holdfast.core.delivery import Delivery
from holdfast.core.questions import Question
from holdfast.core.turns import Turn
from holdfast.egress import Egress
from holdfast.errors import Rejected

NAME = "github_comment"


@contextlib.asynccontextmanager
async def opened(context: ChannelContext) -> AsyncGenerator[Channel]:
    config = context.config.github
    token = context.environment.get(config.token_env, "")
    egress = Egress.to(config.base_url)
    try:
        carrier = GithubCarrier(egress, config.base_url, token, config.token_env, context.clock)
        yield Channel(capabilities=Capabilities(delivers_later=True, message_size=SIZE), carrier=carrier)
    finally:
        await egress.close()


class GithubCarrier:
    """Writes deliveries as comments."""

    # Only the newest comments are searched, so a comment that is written again can be there twice.
    dedupes = False
    in_line = False
    takes_files = False

    def __init__(self, egress: Egress, base_url: str, token: str, token_env: str, clock: Clock) -> None:
        self._client = GithubClient(egress, base_url, token, token_env, clock)

    def check(self, target: str) -> None:
        _issue(target)
        self._client.require_token(target)

    def split(self, text: str) -> Sequence[str]:
        return parts(text)

    def ask(self, turn: Turn, question: Question, target: str, now_ms: int) -> Sequence[Delivery]:  # noqa: ARG002 - No person reads it.
        return ()

    async def send(self, sent: Delivery) -> str:
        self.check(sent.target)
        return await self._client.write(_issue(sent.target), comment(sent))

    async def find(self, sent: Delivery) -> str | None:
        self.check(sent.target)
        async for each in self._client.newest(_issue(sent.target)):
            if is_comment_of(each.body or "", sent):
                return each.html_url or "found"
        return None


def _issue(target: str) -> Issue:
    if (found := Issue.parse(target.partition(":")[2])) is None:
        raise Rejected(f"{target!r} names no issue: use {NAME}:OWNER/REPOSITORY#NUMBER")
    return found
