"""A scripted OpenViking on loopback: the part of its HTTP interface that is used here, as version 0.5.2 was seen to answer.

`tests/memory/test_openviking.py` also runs against the real server where that is installed, so that this one stays honest.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.channels.receiver import Line, Receiver, Reply, receiving
from tests.http_server import Request

KEY = "root-0123456789abcdef"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 409: "Conflict"}
_ENDED = ("completed", "failed", "cancelled")


@dataclass
class Kept:
    """A session: what it holds, and what each commit of it took away."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    archives: list[list[dict[str, Any]]] = field(default_factory=list)
    done: bool = False
    changes: dict[str, list[dict[str, str]]] = field(default_factory=dict)


@dataclass
class Work:
    """A task.  It takes one step of `stages` each time that somebody looks."""

    task_id: str
    name: str
    who: tuple[str, str]
    created_at: float
    stages: list[str]

    @property
    def status(self) -> str:
        return self.stages[0]


@dataclass(frozen=True)
class Fault:
    """What becomes of one request, instead of an answer: it was taken, though nobody hears so, or it was not."""

    line: Line
    taken: bool


class OpenViking:
    """A server.  `mode` is how it tells who asks; `stages` are what the tasks go through; `faults` are by their number."""

    def __init__(self, mode: str = "dev") -> None:
        self.mode = mode
        self.stages = ["pending", "running", "completed"]
        self.faults: dict[int, Fault] = {}
        # What everybody gets instead of an answer.
        self.down: Line | None = None
        self.sessions: dict[tuple[str, str, str], Kept] = {}
        self.memories: dict[tuple[str, str], dict[str, str]] = {}
        self.tasks: list[Work] = []
        self.extractions: Counter[str] = Counter()
        self.requests = 0
        # What happens there besides, once a request has been answered.
        self.meanwhile: Callable[[Request], None] = lambda _: None
        self.receiver: Receiver
        self._numbers = itertools.count(1)

    @property
    def url(self) -> str:
        return self.receiver.url("")

    def kept(self, name: str) -> Kept:
        """Return the session of that name, whosever it is."""
        (found,) = [kept for (*_, each), kept in self.sessions.items() if each == name]
        return found

    def asked(self, pattern: str) -> list[Request]:
        """Return the requests that were made for something."""
        return [post for post in self.receiver.posts if re.search(pattern, f"{post.method} {post.path}")]

    def answer(self, post: Request) -> Line:
        self.requests += 1
        if self.down:
            return self.down
        fault = self.faults.pop(self.requests, None)
        if fault and not fault.taken:
            return fault.line
        status, body = self._answer(post)
        self.meanwhile(post)
        if fault:
            return fault.line
        reason = _REASONS[status]
        return Reply(f"{status} {reason}", {"Content-Type": "application/json"}, json.dumps(body).encode())

    def _answer(self, post: Request) -> tuple[int, dict[str, Any]]:
        place = urlsplit(post.path)
        if place.path == "/health":
            return 200, {"status": "ok", "healthy": True, "version": "0.5.2", "auth_mode": self.mode}
        who = self._who(post.headers)
        if who is None:
            return _error(401, "UNAUTHENTICATED", "Missing or invalid API Key.")
        query = {name: values[0] for name, values in parse_qs(place.query).items()}
        for method, pattern, answer in self._routes:
            found = re.fullmatch(pattern, place.path)
            if found and method == post.method:
                return answer(self, who, *map(unquote, found.groups()), told=post.json if post.body else query)
        return _error(404, "NOT_FOUND", "Not Found")

    def _who(self, headers: dict[str, str]) -> tuple[str, str] | None:
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if self.mode == "api_key":
            return ("acme", "alice") if key == KEY else None
        if self.mode == "trusted" and key != KEY:
            return None
        return headers["x-openviking-account"], headers["x-openviking-user"]

    def _create(self, who: tuple[str, str], told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if (*who, told["session_id"]) in self.sessions:
            return _error(409, "ALREADY_EXISTS", "Resource already exists")
        assert told["auto_commit_policy"] is None, "the server must not commit by itself"
        self.sessions[*who, told["session_id"]] = Kept()
        return _ok({"session_id": told["session_id"], "user": _user(who)})

    def _list(self, who: tuple[str, str], told: object) -> tuple[int, dict[str, Any]]:
        return _ok([{"session_id": name, "is_dir": True} for (*owner, name) in self.sessions if (*owner,) == who])

    def _get(self, who: tuple[str, str], name: str, told: object) -> tuple[int, dict[str, Any]]:
        if (kept := self.sessions.get((*who, name))) is None:
            return _missing(name)
        count = len(kept.archives)
        return _ok({"session_id": name, "message_count": len(kept.messages), "commit_count": count, "user": _user(who)})

    def _context(self, who: tuple[str, str], name: str, told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if (kept := self.sessions.get((*who, name))) is None:
            return _missing(name)
        assert int(told["token_budget"]) > 1_000_000, "with fewer, it answers with gaps"
        pending = [] if kept.done else [each for archive in kept.archives for each in archive]
        return _ok({"messages": pending + kept.messages, "stats": {"totalArchives": len(kept.archives)}})

    def _add(self, who: tuple[str, str], name: str, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if len(told["messages"]) > 100:
            return _error(400, "INVALID_ARGUMENT", "messages: at most 100 items")
        kept = self.sessions.setdefault((*who, name), Kept())
        for each in told["messages"]:
            parts = [{"type": "text", "text": each["content"]}]
            said = {"role": each["role"], "turn_id": each["turn_id"], "created_at": each["created_at"], "parts": parts}
            kept.messages.append({"id": f"msg_{next(self._numbers)}", **said})
        return _ok({"session_id": name, "message_count": len(kept.messages), "added": len(told["messages"])})

    def _commit(self, who: tuple[str, str], name: str, told: object) -> tuple[int, dict[str, Any]]:
        if (kept := self.sessions.get((*who, name))) is None:
            return _missing(name)
        if not kept.messages:
            return _ok({"session_id": name, "status": "skipped", "task_id": None, "reason": "no_messages"})
        kept.archives.append(kept.messages)
        kept.messages, kept.done = [], False
        task = Work(f"task-{next(self._numbers)}", name, who, next(self._numbers), list(self.stages))
        self.tasks.append(task)
        return _ok({"session_id": name, "status": "accepted", "task_id": task.task_id, "archived": True})

    def _task(self, who: tuple[str, str], task_id: str, told: object) -> tuple[int, dict[str, Any]]:
        for task in self.tasks:
            if (task.task_id, task.who) == (task_id, who):
                return _ok(self._shown(task))
        return _error(404, "NOT_FOUND", "Task not found or expired")

    def _tasks(self, who: tuple[str, str], told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        assert told["task_type"] == "session_commit"
        found = [task for task in self.tasks if (task.name, task.who) == (told["resource_id"], who)]
        return _ok([self._shown(task) for task in found])

    def _shown(self, task: Work) -> dict[str, Any]:
        if task.status not in _ENDED:
            task.stages.pop(0)
            if task.status == "completed":
                self._extract(task)
        shown = {
            "task_id": task.task_id,
            "status": task.status,
            "created_at": task.created_at,
            "result": None,
            "error": None,
        }
        if task.status == "failed":
            return {**shown, "error": "the model said nothing that makes sense"}
        if task.status == "completed":
            count = len(self.kept(task.name).changes["adds"]) if any(n == task.name for *_, n in self.sessions) else 0
            return {**shown, "result": {"memories_extracted": {"memory_write": count}}}
        return shown

    def _extract(self, task: Work) -> None:
        """Remember each thing that the person said; what is the same as before is changed."""
        self.extractions[task.name] += 1
        kept, known = self.sessions[*task.who, task.name], self.memories.setdefault(task.who, {})
        kept.done, kept.changes = True, {"adds": [], "updates": []}
        for message in kept.archives[-1]:
            if message["role"] == "user":
                text = message["parts"][0]["text"]
                uri = f"viking://user/{task.who[1]}/memories/events/{re.sub(r'[^a-z]+', '_', text.lower())}.md"
                kept.changes["updates" if uri in known else "adds"].append({"uri": uri})
                known[uri] = f"# Summary\n{text}"

    def _archive(self, who: tuple[str, str], name: str, told: object) -> tuple[int, dict[str, Any]]:
        kept = self.sessions.get((*who, name))
        if kept is None or not kept.done:
            return _error(404, "NOT_FOUND", "Archive archive_001 not found")
        return _ok({"archive_id": "archive_001", "messages": kept.archives[0]})

    def _drop(self, who: tuple[str, str], name: str, told: object) -> tuple[int, dict[str, Any]]:
        return _missing(name) if self.sessions.pop((*who, name), None) is None else _ok({"session_id": name})

    def _find(self, who: tuple[str, str], told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if not told["query"].strip():
            return _error(400, "INVALID_ARGUMENT", "Search query must not be empty")
        assert (told["target_uri"], told["level"], told["read_content"]) == ("viking://~/memories", 2, True)
        words = set(re.findall(r"\w+", told["query"].lower()))
        known = self.memories.get(who, {}).items()
        ranked = sorted(known, key=lambda each: -len(words & set(re.findall(r"\w+", each[1].lower()))))
        hits = [{"uri": uri, "level": 2, "abstract": text[:9], "content": text} for uri, text in ranked[: told["limit"]]]
        return _ok({"memories": hits, "resources": [], "skills": [], "total": len(hits)})

    def _remove(self, who: tuple[str, str], told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        gone = self.memories.get(who, {}).pop(told["uri"], None)
        return _ok({"uri": told["uri"], "estimated_deleted_count": 0 if gone is None else 1})

    def _stat(self, who: tuple[str, str], told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if told["uri"] not in self.memories.get(who, {}):
            return _error(404, "NOT_FOUND", f"File not found: {told['uri']}")
        return _ok({"uri": told["uri"], "isDir": False})

    def _read(self, who: tuple[str, str], told: dict[str, str]) -> tuple[int, dict[str, Any]]:
        found = re.fullmatch(r"viking://~/sessions/([^/]+)/history/archive_001/memory_diff.json", told["uri"])
        kept = self.sessions.get((*who, found[1])) if found else None
        if kept is None or not kept.done:
            return _error(404, "NOT_FOUND", f"File not found: {told['uri']}")
        return _ok(json.dumps({"operations": {**kept.changes, "deletes": []}}))

    _routes: tuple[tuple[str, str, Callable[..., tuple[int, dict[str, Any]]]], ...] = (
        ("POST", r"/api/v1/sessions", _create),
        ("GET", r"/api/v1/sessions", _list),
        ("GET", r"/api/v1/sessions/([^/]+)", _get),
        ("DELETE", r"/api/v1/sessions/([^/]+)", _drop),
        ("GET", r"/api/v1/sessions/([^/]+)/context", _context),
        ("POST", r"/api/v1/sessions/([^/]+)/messages/batch", _add),
        ("POST", r"/api/v1/sessions/([^/]+)/commit", _commit),
        ("GET", r"/api/v1/sessions/([^/]+)/archives/archive_001", _archive),
        ("GET", r"/api/v1/tasks", _tasks),
        ("GET", r"/api/v1/tasks/([^/]+)", _task),
        ("POST", r"/api/v1/search/find", _find),
        ("DELETE", r"/api/v1/fs", _remove),
        ("GET", r"/api/v1/fs/stat", _stat),
        ("GET", r"/api/v1/content/read", _read),
    )


def _user(who: tuple[str, str]) -> dict[str, str]:
    return {"account_id": who[0], "user_id": who[1]}


def _ok(result: object) -> tuple[int, dict[str, Any]]:
    return 200, {"status": "ok", "result": result, "error": None, "telemetry": None}


def _error(status: int, code: str, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"status": "error", "error": {"code": code, "message": message}}


def _missing(name: str) -> tuple[int, dict[str, Any]]:
    return _error(404, "NOT_FOUND", f"Session {name} not found")


@asynccontextmanager
async def an_openviking(mode: str = "dev") -> AsyncIterator[OpenViking]:
    """Run a server for as long as the context lasts."""
    server = OpenViking(mode)
    async with receiving(by=server.answer) as server.receiver:
        yield server
