"""A client of the HTTP interface of an OpenViking server (https://openviking.ai), as far as it is used.

Every response is an envelope, `{"status": "ok", "result": …}` or `{"status": "error", "error": {"code", "message"}}`.  In
its modes `dev` and `trusted` a server trusts the user in the headers; in the mode `api_key` it only looks at the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from holdfast.channels.status import is_good
from holdfast.egress import FetchedResponse
from holdfast.errors import Unavailable
from holdfast.memory.exchange import Exchange

# The server's limit of one request.
BATCH_MAX = 100
# One response holds a whole conversation.
CONTEXT_MAX_BYTES = 16 * 1024 * 1024
# With a lower limit the server leaves messages out.
TOKENS_MAX = 1_000_000_000
FOUND_MAX_BYTES = CHANGES_MAX_BYTES = 4 * 1024 * 1024
_API = "/api/v1"
_FIRST_ARCHIVE = "archive_001"
_NOT_FOUND = 404
_THERE_ALREADY = 409
_FULL_TEXT = 2

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user of an account in OpenViking."""

    account_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A session in OpenViking, and its user."""

    who: Identity
    name: str

    @property
    def path(self) -> str:
        return f"{_API}/sessions/{quote(self.name, safe='')}"

    @property
    def changes(self) -> str:
        """The file with the changes of its first commit."""
        return f"viking://~/sessions/{self.name}/history/{_FIRST_ARCHIVE}/memory_diff.json"


class VikingMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message.  OpenViking gives it an id of its own, and keeps the rest."""

    role: str
    created_at: str = ""
    turn_id: str | None = None
    content: str = ""

    @property
    def mark(self) -> tuple[str | None, str, str]:
        """The identity of a message; the server may have changed its text, for privacy."""
        return self.turn_id, self.role, self.created_at


class Stats(msgspec.Struct, frozen=True, rename="camel"):
    total_archives: int = 0


class SessionContents(msgspec.Struct, frozen=True):
    """The uncommitted messages of a session, and statistics."""

    messages: list[VikingMessage]
    stats: Stats = Stats()


# Stands for contents that are too large to read; it equals no expected contents.
_UNREADABLE = SessionContents(messages=[VikingMessage(role="")])


class Held(msgspec.Struct, frozen=True):
    """A session there."""

    user: Identity | None = None
    commit_count: int = 0


class Extracted(msgspec.Struct, frozen=True):
    """The number of memories of each kind that a commit extracted."""

    memories_extracted: dict[str, object] = {}


class Task(msgspec.Struct, frozen=True):
    """The extraction that a commit starts."""

    task_id: str
    status: str
    error: str | None = None
    created_at: float = 0
    result: Extracted | None = None


class Hit(msgspec.Struct, frozen=True):
    """A search result."""

    uri: str
    abstract: str = ""
    content: str | None = None


class ServerHealth(msgspec.Struct, frozen=True):
    healthy: bool
    version: str = ""
    auth_mode: str = ""


class ChangedMemory(msgspec.Struct, frozen=True):
    uri: str


class Operations(msgspec.Struct, frozen=True):
    adds: list[ChangedMemory] = []
    updates: list[ChangedMemory] = []


class CommitChanges(msgspec.Struct, frozen=True):
    """The changes that a commit made to memories."""

    operations: Operations = Operations()


class _Envelope(msgspec.Struct, Generic[Result], frozen=True):
    result: Result


class _Added(msgspec.Struct, frozen=True):
    message_count: int


class _Committed(msgspec.Struct, frozen=True):
    status: str
    task_id: str | None = None


class _Found(msgspec.Struct, frozen=True):
    memories: list[Hit]


class _Named(msgspec.Struct, frozen=True):
    session_id: str


class _Removed(msgspec.Struct, frozen=True):
    estimated_deleted_count: int


class Viking:
    """A client.  Raises `Unavailable` and `Rejected`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def health(self) -> ServerHealth:
        answer = await self._exchange.request("GET", "/health")
        return self._exchange.understood(answer, ServerHealth, '{"healthy": true}')

    async def held(self, place: Place) -> Held | None:
        """Return a session; None if it does not exist."""
        answer = await self._get(place.who, place.path)
        return None if answer.status == _NOT_FOUND else self._result(answer, _Envelope[Held])

    async def context(self, place: Place) -> SessionContents | None:
        """Return the contents of a session; None if it does not exist."""
        path = f"{place.path}/context?token_budget={TOKENS_MAX}"
        answer = await self._exchange.request("GET", path, _headers(place.who), bytes_max=CONTEXT_MAX_BYTES)
        if answer.status == _NOT_FOUND:
            return None
        return _UNREADABLE if answer.cut and is_good(answer.status) else self._result(answer, _Envelope[SessionContents])

    async def create(self, place: Place) -> Held | None:
        """Create a session without automatic commits; None if it exists already."""
        answer = await self._post(place.who, f"{_API}/sessions", {"session_id": place.name, "auto_commit_policy": None})
        return None if answer.status == _THERE_ALREADY else self._result(answer, _Envelope[Held])

    async def add(self, place: Place, messages: Sequence[VikingMessage]) -> int:
        """Add messages, at most `BATCH_MAX`, all or none; returns how many the session holds now."""
        answer = await self._post(place.who, f"{place.path}/messages/batch", {"messages": messages})
        return self._result(answer, _Envelope[_Added]).message_count

    async def commit(self, place: Place) -> str | None:
        """Close what a session holds off; returns the task that extracts from it, None where it holds nothing."""
        answer = await self._post(place.who, f"{place.path}/commit", {})
        return self._result(answer, _Envelope[_Committed]).task_id

    async def latest(self, place: Place) -> Task | None:
        """Return the last task of a session; None where there was none, or it was long ago."""
        answer = await self._get(
            place.who, f"{_API}/tasks?task_type=session_commit&resource_id={quote(place.name, safe='')}"
        )
        tasks = self._result(answer, _Envelope[list[Task]])
        return max(tasks, key=lambda task: task.created_at, default=None)

    async def task(self, who: Identity, task_id: str) -> Task:
        return self._result(await self._get(who, f"{_API}/tasks/{quote(task_id, safe='')}"), _Envelope[Task])

    async def is_archived(self, place: Place) -> bool:
        """Return whether a first commit has come to its end."""
        answer = await self._exchange.request(
            "GET", f"{place.path}/archives/{_FIRST_ARCHIVE}", _headers(place.who), bytes_max=CONTEXT_MAX_BYTES
        )
        return self._is_there(answer)

    async def drop(self, place: Place) -> None:
        """Delete a session, if it is there; what was extracted from it stays."""
        self._is_there(await self._exchange.request("DELETE", place.path, _headers(place.who)))

    async def names(self, who: Identity) -> list[str]:
        """Return the names of all sessions of a user."""
        answer = await self._exchange.request("GET", f"{_API}/sessions", _headers(who), bytes_max=CONTEXT_MAX_BYTES)
        return [each.session_id for each in self._result(answer, _Envelope[list[_Named]])]

    async def find(self, who: Identity, query: str, limit: int) -> list[Hit]:
        """Return the memories of a user that are most similar to a query, with their text."""
        asked = {
            "query": query,
            "limit": limit,
            "target_uri": "viking://~/memories",
            "level": _FULL_TEXT,
            "read_content": True,
        }
        answer = await self._exchange.post(f"{_API}/search/find", asked, _headers(who), bytes_max=FOUND_MAX_BYTES)
        return self._result(answer, _Envelope[_Found]).memories

    async def remove(self, who: Identity, uri: str) -> int:
        """Delete a file; returns how many there were."""
        answer = await self._exchange.request("DELETE", f"{_API}/fs?uri={quote(uri, safe='')}", _headers(who))
        return 0 if answer.status == _NOT_FOUND else self._result(answer, _Envelope[_Removed]).estimated_deleted_count

    async def exists(self, who: Identity, uri: str) -> bool:
        """Return whether there is a file."""
        answer = await self._get(who, f"{_API}/fs/stat?uri={quote(uri, safe='')}")
        return self._is_there(answer)

    async def changes(self, place: Place) -> CommitChanges:
        """Return what the commit of a session changed."""
        path = f"{_API}/content/read?uri={quote(place.changes, safe='')}"
        answer = await self._exchange.request("GET", path, _headers(place.who), bytes_max=CHANGES_MAX_BYTES)
        if answer.status == _NOT_FOUND:
            return CommitChanges()
        try:
            return msgspec.json.decode(self._result(answer, _Envelope[str]), type=CommitChanges)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unavailable(f"{answer.url} answered with something else than what a commit changed") from error

    async def close(self) -> None:
        await self._exchange.close()

    async def _get(self, who: Identity, path: str) -> FetchedResponse:
        return await self._exchange.request("GET", path, _headers(who))

    async def _post(self, who: Identity, path: str, body: object) -> FetchedResponse:
        return await self._exchange.post(path, body, _headers(who))

    def _is_there(self, answer: FetchedResponse) -> bool:
        if answer.status == _NOT_FOUND:
            return False
        self._exchange.refuse(answer)
        return True

    def _result(self, answer: FetchedResponse, shape: type[_Envelope[Result]]) -> Result:
        return self._exchange.understood(answer, shape, 'what OpenViking answers, {"status": "ok", "result": …}').result


def _headers(who: Identity) -> Mapping[str, str]:
    return {"X-OpenViking-Account": who.account_id, "X-OpenViking-User": who.user_id}
