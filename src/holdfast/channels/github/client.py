"""GitHub's API for comments on issues and pull requests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Self, TypeVar
from urllib.parse import quote

import msgspec

from holdfast.channels.status import SAID_MAX_CHARS, is_good, may_pass, said
from holdfast.clock import Clock
from holdfast.egress import Egress, FetchedResponse, retry_after_s, server_time_s
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable

COMMENTS_PER_PAGE = 50
# Only the newest comments are searched.
PAGES_MAX = 4
ANSWER_MAX_BYTES = 16 * 1024 * 1024
# How long to wait after a rate limit that names no time.
RATE_LIMIT_S = 60.0
API_VERSION = "2022-11-28"

_ISSUE = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})/(?!\.{1,2}#)([A-Za-z0-9._-]{1,100})#([1-9][0-9]{0,8})")
_FORBIDDEN = 403
_TOO_MANY = 429
# A proxy before GitHub stopped waiting: GitHub may have written the comment.
_UNSURE = frozenset({500, 502, 504})
_MOVED = range(300, 400)

Shape = TypeVar("Shape")


class _Comments(msgspec.Struct):
    comments: int = 0


class Comment(msgspec.Struct):
    """A comment as GitHub describes it."""

    body: str | None = None
    html_url: str = ""


class _Fault(msgspec.Struct):
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue or a pull request."""

    owner: str
    repository: str
    number: str

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """Return the issue that OWNER/REPOSITORY#NUMBER names; None if it names none."""
        found = _ISSUE.fullmatch(name)
        return cls(owner=found[1], repository=found[2], number=found[3]) if found else None

    def __str__(self) -> str:
        return f"{self.owner}/{self.repository}#{self.number}"

    @property
    def path(self) -> str:
        return f"/repos/{quote(self.owner)}/{quote(self.repository)}/issues/{self.number}"


class GithubClient:
    """Reads and writes comments in the name of the owner of a token.

    Raises `Unavailable` or `Rejected`, with what to do, for any answer but success.
    """

    def __init__(self, egress: Egress, base_url: str, token: str, token_env: str, clock: Clock) -> None:
        self._egress = egress
        self._base_url = base_url.rstrip("/")
        self._token = token
        self._token_env = token_env
        self._clock = clock

    def require_token(self, target: str) -> None:
        if not self._token:
            raise Rejected(
                f"there is no token to write to {target} with: put one into the environment variable {self._token_env}, "
                "and restart the gateway"
            )

    async def write(self, issue: Issue, text: str) -> str:
        """Write a comment and return its address.  Raises `OutcomeUnknown` too."""
        body = msgspec.json.encode({"body": text})
        headers = {**self._headers(), "Content-Type": "application/json", "Accept-Encoding": "identity"}
        url = f"{self._base_url}{issue.path}/comments"
        answer = await self._egress.post(url, body, headers=headers, bytes_max=ANSWER_MAX_BYTES)
        if answer.status in _UNSURE:
            raise OutcomeUnknown(f"GitHub has trouble: {answer.status} {answer.reason}")
        self._refuse(answer, issue)
        written = _read(answer, Comment)
        return (written and written.html_url) or str(answer.status)

    async def newest(self, issue: Issue) -> AsyncIterator[Comment]:
        """Yield the newest comments, page by page."""
        count = (await self._get(issue, "", _Comments)).comments
        last = max(1, -(-count // COMMENTS_PER_PAGE))
        for page in range(last, max(0, last - PAGES_MAX), -1):
            query = f"/comments?per_page={COMMENTS_PER_PAGE}&page={page}"
            for each in await self._get(issue, query, list[Comment]):
                yield each

    async def _get(self, issue: Issue, query: str, shape: type[Shape]) -> Shape:
        url = f"{self._base_url}{issue.path}{query}"
        answer = await self._egress.request("GET", url, headers=self._headers(), bytes_max=ANSWER_MAX_BYTES)
        self._refuse(answer, issue)
        if (found := _read(answer, shape)) is None:
            raise Unavailable("GitHub's answer cannot be read")
        return found

    def _headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API_VERSION,
        }

    def _refuse(self, answer: FetchedResponse, issue: Issue) -> None:
        if is_good(answer.status):
            return
        told = f"{answer.status} {answer.reason}{_message(answer)}"
        if wait_s := _rate_limit_s(answer, self._clock.now_ms()):
            raise Unavailable(f"GitHub's rate limit is reached: {told}", wait_s)
        if may_pass(answer.status):
            raise Unavailable(f"GitHub cannot answer now: {told}")
        match answer.status:
            case 401:
                hint = f"put a valid token into {self._token_env}, and restart the gateway"
            case 403:
                hint = f"give the token in {self._token_env} the right to write issues and pull requests of {issue}"
            case 404 | 410:
                hint = f"see whether {issue} is there, and whether the token in {self._token_env} may see it"
            case _ if answer.status in _MOVED:
                hint = f"{issue} has moved; use the name that it has now"
            case _:
                hint = "see what it says, and send it again"
        raise Rejected(f"GitHub refuses it: {told}; {hint}")


def _rate_limit_s(answer: FetchedResponse, now_ms: int) -> float | None:
    """Return how long to wait for GitHub's rate limit; None if GitHub refuses for another reason."""
    if answer.status not in (_FORBIDDEN, _TOO_MANY):
        return None
    if (wait_s := retry_after_s(answer.headers, now_ms)) is not None:
        return wait_s or RATE_LIMIT_S
    reset = answer.headers.get("x-ratelimit-reset", "")
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return max(1.0, int(reset) - server_time_s(answer.headers, now_ms))
    limited = answer.status == _TOO_MANY or "rate limit" in _message(answer).lower()
    return RATE_LIMIT_S if limited else None


def _message(answer: FetchedResponse) -> str:
    fault = _read(answer, _Fault)
    return f": {fault.message[:SAID_MAX_CHARS]}" if fault and fault.message else said(answer)


def _read(answer: FetchedResponse, shape: type[Shape]) -> Shape | None:
    try:
        return msgspec.json.decode(answer.body, type=shape)
    except (msgspec.DecodeError, RecursionError):
        return None
