"""How the web answers: JSON always, and one shape for every refusal."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import (
    ConfigInvalid,
    Damaged,
    Fatal,
    HoldfastError,
    IllegalMove,
    KeyReused,
    NotFound,
    NotReady,
    NotTrusted,
    OverQuota,
    Overridden,
    QueueFull,
    Rejected,
    SessionBusy,
    Stale,
    TooLarge,
    TooManyCommits,
    Unavailable,
    Unconfirmed,
)

RETRY_AFTER_S = 1
# So much of a long answer is written before others are served.
AT_ONCE_BYTES = 256 * 1024
# Where clients of OpenAI ask.
OPENAI_PATH = "/v1/"
# The status, code, message and hint for what there is no memory for.
NO_MEMORY = (503, "no_memory", "the gateway has no memory left for this", "send it again in a moment, or less at once")
_encoder = msgspec.json.Encoder()
log = logging.getLogger(__name__)


class Refused(Rejected):
    """A refusal that only HTTP knows: it carries its own status and code."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str | None = None,
        retry_after_s: int = RETRY_AFTER_S,
        more: Mapping[str, str | int] = MappingProxyType({}),
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.hint = hint
        self.retry_after_s = retry_after_s
        # Further fields of the error.
        self.more = more
        self.headers = headers

    def response(self, path: str = "") -> Response:
        """Return it as it is answered at a path."""
        found = refusal(self.status, self.code, str(self), self.hint or _HINTS.get(self.status), path=path, **self.more)
        if "Retry-After" in found.headers:
            found.headers["Retry-After"] = str(self.retry_after_s)
        found.headers.update(self.headers)
        return found


def answer(value: object, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(_encoder.encode(value), status, media_type="application/json")


async def listing(empty: object, name: str, items: Iterable[object]) -> Response:
    """Return a value as JSON whose list `name` is left empty, with these items in it.

    They are written one by one, and others are served in between: all at once would hold the loop for as long as it takes.
    """
    mark = b'"%b":[' % name.encode()
    head, _, tail = _encoder.encode(empty).partition(mark)
    body, rested = bytearray(head + mark), 0
    for nth, item in enumerate(items):
        body += (b"," if nth else b"") + _encoder.encode(item)
        if len(body) - rested > AT_ONCE_BYTES:
            rested = len(body)
            await asyncio.sleep(0)
    return Response(bytes(body + tail), media_type="application/json")


def refusal(status: int, code: str, message: str, hint: str | None = None, *, path: str = "", **more: str | int) -> Response:
    """Return an error as every client expects it at a path; `more` are further fields of it."""
    headers: dict[str, str] = {}
    if status in (429, 503):
        headers["Retry-After"] = str(RETRY_AFTER_S)
    if status in (408, 413):
        # The rest of the body may never end.
        headers["Connection"] = "close"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if path.startswith(OPENAI_PATH):
        # These show people the message alone, and tell errors apart by their type.
        message = f"{message}; {hint}" if hint else message
        more = {"type": "server_error" if status >= 500 else "invalid_request_error", **more}
    body = _encoder.encode({"error": {"code": code, "message": message, "hint": hint, **more}})
    return Response(body, status, headers, media_type="application/json")


async def refuse(request: Request, error: Exception) -> Response:
    """Answer for an error of our own tree; its family decides.  What was looked for in vain may have held a secret."""
    found, redaction = _refusal(request.url.path, error), request.app.state.redaction
    text = bytes(found.body).decode()
    if redaction.finds(text):
        found.body = redaction.text(text).encode()
        found.headers["Content-Length"] = str(len(found.body))
    return found


def _refusal(path: str, error: Exception) -> Response:
    if isinstance(error, Refused):
        return error.response(path)
    status = status_of(error)
    more = {"state": str(error.state)} if isinstance(error, IllegalMove) else _setting(error)
    hint = next((told for kind, told in _TOLD.items() if isinstance(error, kind)), _HINTS.get(status))
    return refusal(status, _code(error), str(error), hint, path=path, **more)


def _setting(error: Exception) -> Mapping[str, str]:
    """Return the setting that is wrong, with which the message begins."""
    key = str(error).partition(": ")[0]
    return {"key": key} if isinstance(error, ConfigInvalid) and "." in key and " " not in key else {}


async def starve(request: Request, error: Exception) -> Response:  # noqa: ARG001 - It says nothing but its name.
    """Answer for a request that there was no memory for: it may be a good one, and come at a better time."""
    log.warning("no memory for %s %s", request.method, request.url.path)
    return refusal(*NO_MEMORY, path=request.url.path)


async def apologise(request: Request, error: Exception) -> Response:  # noqa: ARG001 - What it was is in the log only.
    """Answer for a bug, and tell nothing of it."""
    return refusal(500, "internal", "something went wrong here", "the gateway's log has the details", path=request.url.path)


def status_of(error: Exception) -> int:
    """Return how an error is answered."""
    match error:
        case Refused():
            return error.status
        case NotFound():
            return 404
        case NotTrusted():
            return 403
        case TooLarge():
            return 413
        case ConfigInvalid() | KeyReused():
            return 422
        case IllegalMove() | Overridden() | SessionBusy() | Stale():
            return 409
        case OverQuota() | QueueFull() | TooManyCommits():
            return 429
        case Rejected():
            return 400
        case Unavailable() | Fatal():
            return 503
        case _:
            return 500


# What is known better than its status would say.
_TOLD: Mapping[type[Exception], str | None] = MappingProxyType(
    {
        NotReady: None,
        Unconfirmed: "it may have been accepted: look before you send it again, or send it with an Idempotency-Key",
        ConfigInvalid: "correct it and send it again; nothing was changed",
        Damaged: "other sessions are served; the operator sees what to do with: holdfast doctor",
        SessionBusy: "wait for its answer, cancel it, or send with busy=queue",
        TooManyCommits: "wait for one of them; what is owed is also committed by itself once its conversation is over",
        OverQuota: "make room as the message says, or ask the operator to raise it in [limits]",
        NotTrusted: "let the operator name this owner in tools.trusted_owners, or send it as text or as a picture",
    }
)
_HINTS = {
    400: "change what the message names; GET /openapi.json says what is taken",
    404: "look at its name again: it may be deleted, or belong to another user",
    409: "reload it: its state is another one by now",
    413: "send less at once",
    422: "use a fresh Idempotency-Key for another message",
    429: "wait for an answer, then send again",
    503: "nothing was lost; send the same request again in a moment",
}


def _code(error: Exception) -> str:
    if isinstance(error, ConfigInvalid):
        return "bad_setting"
    name = type(error).__name__
    return "error" if type(error) is HoldfastError else re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
