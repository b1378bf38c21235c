"""GitHub as a place to send to: `github_comment:OWNER/REPOSITORY#NUMBER` writes comments on an issue or a pull request.

Each comment ends in a mark that readers do not see, so what became of one that was cut off can be looked up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import quote

import msgspec

from holdfast.channels.answers import SAID_MAX_CHARS, is_good, may_pass, said
from holdfast.clock import Clock
from holdfast.core.delivery import Delivery
from holdfast.egress import Egress, FetchedResponse, retry_after_s, server_time_s
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable

CHANNEL = "github_comment"
COMMENT_MAX_CHARS = 65_536
# What a comment holds besides its text: the label of a repeat, and the mark.
MARGIN_CHARS = 136
TEXT_MAX_CHARS = COMMENT_MAX_CHARS - MARGIN_CHARS
COMMENTS_PER_PAGE = 50
# The comment that is looked for is among the newest.
PAGES_MAX = 4
ANSWER_MAX_BYTES = 16 * 1024 * 1024
# How long GitHub is left alone where it wants that and does not say for how long.
PATIENCE_S = 60.0
API_VERSION = "2022-11-28"

_TARGET = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})/(?!\.{1,2}#)([A-Za-z0-9._-]{1,100})#([1-9][0-9]{0,8})")
_FORBIDDEN = 403
_TOO_MANY = 429
# What stands in front of GitHub gave up waiting for it: it may have written the comment all the same.
_UNSURE = frozenset({500, 502, 504})
_MOVED = range(300, 400)

Shape = TypeVar("Shape")


class _Issue(msgspec.Struct):
    comments: int = 0


class _Comment(msgspec.Struct):
    body: str | None = None
    html_url: str = ""


class _Fault(msgspec.Struct):
    message: str = ""


class GithubCarrier:
    """Writes deliveries as comments, in the name of whoever the token belongs to."""

    # Only the newest comments are searched, so one that is written again can be there twice.
    dedupes = False

    def __init__(self, egress: Egress, base_url: str, token: str, token_env: str, clock: Clock) -> None:
        self._egress = egress
        self._base_url = base_url.rstrip("/")
        self._token = token
        self._token_env = token_env
        self._clock = clock

    def check(self, target: str) -> None:
        _issue(target)
        if not self._token:
            raise Rejected(
                f"there is no token to write to {target} with: put one into the environment variable {self._token_env}, "
                "and restart the gateway"
            )

    def split(self, text: str) -> Sequence[str]:
        parts: list[str] = []
        while len(text) > TEXT_MAX_CHARS:
            # A line stays whole where that leaves a part of some size.
            end = text.rfind("\n", TEXT_MAX_CHARS // 2, TEXT_MAX_CHARS) + 1 or TEXT_MAX_CHARS
            parts.append(text[:end])
            text = text[end:]
        return [*parts, text]

    async def send(self, sent: Delivery) -> str:
        self.check(sent.target)
        body = msgspec.json.encode({"body": f"{sent.outgoing}\n\n{_mark(sent)}"})
        headers = {**self._headers(), "Content-Type": "application/json", "Accept-Encoding": "identity"}
        url = f"{self._url(sent.target)}/comments"
        answer = await self._egress.post(url, body, headers=headers, bytes_max=ANSWER_MAX_BYTES)
        if answer.status in _UNSURE:
            raise OutcomeUnknown(f"GitHub has trouble: {answer.status} {answer.reason}")
        self._refuse(answer, sent.target)
        written = _read(answer, _Comment)
        return (written and written.html_url) or str(answer.status)

    async def find(self, sent: Delivery) -> str | None:
        self.check(sent.target)
        issue = await self._get(sent.target, "", _Issue)
        last = max(1, -(-issue.comments // COMMENTS_PER_PAGE))
        for page in range(last, max(0, last - PAGES_MAX), -1):
            query = f"/comments?per_page={COMMENTS_PER_PAGE}&page={page}"
            for each in await self._get(sent.target, query, list[_Comment]):
                if (each.body or "").rstrip().endswith(_mark(sent)):
                    return each.html_url or "found"
        return None

    async def _get(self, target: str, query: str, shape: type[Shape]) -> Shape:
        answer = await self._egress.request(
            "GET", self._url(target) + query, headers=self._headers(), bytes_max=ANSWER_MAX_BYTES
        )
        self._refuse(answer, target)
        if (found := _read(answer, shape)) is None:
            raise Unavailable("GitHub's answer cannot be read")
        return found

    def _url(self, target: str) -> str:
        owner, repository, number = _issue(target)
        return f"{self._base_url}/repos/{quote(owner)}/{quote(repository)}/issues/{number}"

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
        }

    def _refuse(self, answer: FetchedResponse, target: str) -> None:
        """Raise `Unavailable` or `Rejected` for anything but success, with what to do."""
        if is_good(answer.status):
            return
        told = f"{answer.status} {answer.reason}{_message(answer)}"
        if wait_s := _wanted_s(answer, self._clock.now_ms()):
            raise Unavailable(f"GitHub wants to be left alone: {told}", wait_s)
        if may_pass(answer.status):
            raise Unavailable(f"GitHub cannot answer now: {told}")
        place = target.partition(":")[2]
        match answer.status:
            case 401:
                hint = f"put a token that is valid into {self._token_env}, and restart the gateway"
            case 403:
                hint = f"give the token in {self._token_env} the right to write issues and pull requests of {place}"
            case 404 | 410:
                hint = f"see whether {place} is there, and whether the token in {self._token_env} may see it"
            case _ if answer.status in _MOVED:
                hint = f"{place} has moved; use the name that it has now"
            case _:
                hint = "see what it says, and send it again"
        raise Rejected(f"GitHub refuses it: {told}; {hint}")


def _issue(target: str) -> tuple[str, str, str]:
    found = _TARGET.fullmatch(target.partition(":")[2])
    if found is None:
        raise Rejected(f"{target!r} names no issue: use {CHANNEL}:OWNER/REPOSITORY#NUMBER")
    return found[1], found[2], found[3]


def _mark(sent: Delivery) -> str:
    return f"<!-- holdfast delivery {sent.id} -->"


def _wanted_s(answer: FetchedResponse, now_ms: int) -> float | None:
    """Return how long GitHub wants to be left alone; None where it refuses for another reason."""
    if answer.status not in (_FORBIDDEN, _TOO_MANY):
        return None
    if (wait_s := retry_after_s(answer.headers, now_ms)) is not None:
        return wait_s or PATIENCE_S
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(1.0, int(reset) - server_time_s(answer.headers, now_ms))
    limited = answer.status == _TOO_MANY or "rate limit" in _message(answer).lower()
    return PATIENCE_S if limited else None


def _message(answer: FetchedResponse) -> str:
    fault = _read(answer, _Fault)
    return f": {fault.message[:SAID_MAX_CHARS]}" if fault and fault.message else said(answer)


def _read(answer: FetchedResponse, shape: type[Shape]) -> Shape | None:
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, RecursionError):
        return None
