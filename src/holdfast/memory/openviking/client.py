"""The HTTP interface of an OpenViking server (https://openviking.ai), as far as it is needed here.

Every answer is an envelope, `{"status": "ok", "result": …}` or `{"status": "error", "error": {"code", "message"}}`.  A
server in its modes `dev` and `trusted` believes whom the headers name; in the mode `api_key` it goes by the key alone.
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

# As many as the server takes in one request.
BATCH_MAX = 100
# A whole conversation comes back in one answer.
CONTEXT_MAX_BYTES = 16 * 1024 * 1024
# Whoever asks with less gets a conversation with gaps.
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
    """Somebody, as OpenViking knows them: a user of an account."""

    account_id: str
    user_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A session there, and whose it is."""

    who: Identity
    name: str

    @property
    def path(self) -> str:
        return f"{_API}/sessions/{quote(self.name, safe='')}"

    @property
    def changes(self) -> str:
        """The file that says what the first commit of it changed."""
        return f"viking://~/sessions/{self.name}/history/{_FIRST_ARCHIVE}/memory_diff.json"


class Spoken(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message.  OpenViking gives it an id of its own, and keeps the rest."""

    role: str
    created_at: str = ""
    turn_id: str | None = None
    content: str = ""

    @property
    def mark(self) -> tuple[str | None, str, str]:
        """What a message is known by; its text may have been changed there, for the sake of privacy."""
        return self.turn_id, self.role, self.created_at


class Stats(msgspec.Struct, frozen=True, rename="camel"):
    total_archives: int = 0


class Context(msgspec.Struct, frozen=True):
    """What a session holds that was not committed yet, and how often it was."""

    messages: list[Spoken]
    stats: Stats = Stats()


# Too much to be read; what nobody can compare is not what it should be.
_UNREADABLE = Context(messages=[Spoken(role="")])


class Held(msgspec.Struct, frozen=True):
    """A session there."""

    user: Identity | None = None
    commit_count: int = 0


class Extracted(msgspec.Struct, frozen=True):
    """How many memories of each kind came of a commit."""

    memories_extracted: dict[str, object] = {}


class Task(msgspec.Struct, frozen=True):
    """The work that a commit leaves behind."""

    task_id: str
    status: str
    error: str | None = None
    created_at: float = 0
    result: Extracted | None = None


class Hit(msgspec.Struct, frozen=True):
    """A memory that was found."""

    uri: str
    abstract: str = ""
    content: str | None = None


class Health(msgspec.Struct, frozen=True):
    healthy: bool
    version: str = ""
    auth_mode: str = ""


class Change(msgspec.Struct, frozen=True):
    uri: str


class Operations(msgspec.Struct, frozen=True):
    adds: list[Change] = []
    updates: list[Change] = []


class Changes(msgspec.Struct, frozen=True):
    """What a commit made of what was remembered."""

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

    async def health(self) -> Health:
        answer = await self._exchange.request("GET", "/health")
        return self._exchange.understood(answer, Health, '{"healthy": true}')

    async def held(self, place: Place) -> Held | None:
        """Return a session; None where there is none."""
        answer = await self._get(place.who, place.path)
        return None if answer.status == _NOT_FOUND else self._result(answer, _Envelope[Held])

    async def context(self, place: Place) -> Context | None:
        """Return what a session holds; None where there is none."""
        path = f"{place.path}/context?token_budget={TOKENS_MAX}"
        answer = await self._exchange.request("GET", path, _headers(place.who), bytes_max=CONTEXT_MAX_BYTES)
        if answer.status == _NOT_FOUND:
            return None
        return _UNREADABLE if answer.cut and is_good(answer.status) else self._result(answer, _Envelope[Context])

    async def create(self, place: Place) -> Held | None:
        """Make a session that the server commits at nobody's word but ours; None where it is there already."""
        answer = await self._post(place.who, f"{_API}/sessions", {"session_id": place.name, "auto_commit_policy": None})
        return None if answer.status == _THERE_ALREADY else self._result(answer, _Envelope[Held])

    async def add(self, place: Place, messages: Sequence[Spoken]) -> int:
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
        """Return the names of all sessions of somebody."""
        answer = await self._exchange.request("GET", f"{_API}/sessions", _headers(who), bytes_max=CONTEXT_MAX_BYTES)
        return [each.session_id for each in self._result(answer, _Envelope[list[_Named]])]

    async def find(self, who: Identity, query: str, limit: int) -> list[Hit]:
        """Return the memories of somebody that are nearest to a question, with their text."""
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

    async def changes(self, place: Place) -> Changes:
        """Return what the commit of a session changed."""
        path = f"{_API}/content/read?uri={quote(place.changes, safe='')}"
        answer = await self._exchange.request("GET", path, _headers(place.who), bytes_max=CHANGES_MAX_BYTES)
        if answer.status == _NOT_FOUND:
            return Changes()
        try:
            return msgspec.json.decode(self._result(answer, _Envelope[str]), type=Changes)
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
