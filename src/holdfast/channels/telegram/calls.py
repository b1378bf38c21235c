"""Calls of the Bot API: one request, and what its answer means.

The address of each request has the token in it, so no error names an address.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Generator, Mapping
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from holdfast.channels.chat.port import LocalFile
from holdfast.channels.telegram.config import TOKEN
from holdfast.egress import Egress, FetchedResponse
from holdfast.errors import AccountRefused, AccountTaken, OutcomeUnknown, Rejected, Unavailable

TIMEOUT_S = 30.0
# A file on a slow connection takes long.
FILE_TIMEOUT_S = 300.0
ANSWER_MAX_BYTES = 16 * 1024 * 1024
BODY_TIMEOUT_S = 15.0
# How long to wait after a flood error that names no time, and at most.
FLOOD_S = 30.0
FLOOD_MAX_S = 24 * 3600.0
DESCRIPTION_MAX_CHARS = 300
_METHOD_UNKNOWN = "method not found"
_GATEWAY_TIMEOUT = 504
_FILE_MISSING = 404

Shape = TypeVar("Shape")


class BadRequest(Rejected):
    """Telegram does not take the parameters of a call."""

    def __init__(self, method: str, description: str, moved_to: int | None = None) -> None:
        super().__init__(f"Telegram refuses {method}: {description}")
        self.description = description.lower()
        # The id that the chat has now.
        self.moved_to = moved_to

    def says(self, *phrases: str) -> bool:
        return any(phrase in self.description for phrase in phrases)


class _Parameters(msgspec.Struct):
    migrate_to_chat_id: int | None = None
    retry_after: float | None = None


class _Answer(msgspec.Struct):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: _Parameters | None = None


class BotApi:
    """The methods of one bot, at Telegram or at a Bot API server of the operator's own."""

    def __init__(self, api_base: str, token: str, hint: str = "put it into the settings") -> None:
        self._base = api_base.rstrip("/")
        self._token = token
        # What to do about a token that is missing or wrong.
        self._hint = hint
        self.host = urlsplit(api_base).netloc
        # A connection for each message would cost two round trips more, and a handshake.
        self._egress = Egress.to(api_base, TIMEOUT_S, keeps=True)

    async def close(self) -> None:
        await self._egress.close()

    async def ask(
        self, method: str, parameters: Mapping[str, object], shape: type[Shape], *, timeout_s: float = TIMEOUT_S
    ) -> Shape:
        """Call a method that may be called twice.  Raises `Unavailable`, `Rejected` and what `do` raises, but no
        `OutcomeUnknown`."""
        try:
            return await self.do(method, parameters, shape, timeout_s=timeout_s)
        except OutcomeUnknown as error:
            raise Unavailable(str(error)) from error

    async def do(
        self,
        method: str,
        parameters: Mapping[str, object],
        shape: type[Shape],
        *,
        file: tuple[str, LocalFile] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Shape:
        """Call a method once.

        Raises `AccountRefused`, `AccountTaken`, `BadRequest`, `Rejected`, `Unavailable` and `OutcomeUnknown`.
        """
        if not TOKEN.fullmatch(self._token):
            raise AccountRefused(f"there is no valid token of the bot: {self._hint}")
        body, media_type = _encoded(parameters, file)
        # Only the path that has the token is ours; `post` names nothing but the host in its errors.
        answer = await self._egress.post(
            f"{self._base}/bot{self._token}/{method}",
            body,
            headers={"Content-Type": media_type, "Accept": "application/json", "Accept-Encoding": "identity"},
            bytes_max=ANSWER_MAX_BYTES,
            timeout_s=FILE_TIMEOUT_S if file else timeout_s,
            body_timeout_s=BODY_TIMEOUT_S,
        )
        told = decoded(answer.body, _Answer)
        if told is None or not told.ok:
            raise self._refusal(method, answer, told)
        if (result := decoded(told.result, shape)) is None:
            raise OutcomeUnknown(f"{self.host} took {method}, and its answer cannot be read")
        return result

    async def download(self, path: str, bytes_max: int) -> tuple[bytes, bool]:
        """Return the content of a file, and whether it is longer."""
        url = f"{self._base}/file/bot{self._token}/{quote(path)}"
        with self._masked():
            answer = await self._egress.request("GET", url, bytes_max=bytes_max, redirects_max=0, timeout_s=FILE_TIMEOUT_S)
        if answer.status == _FILE_MISSING:
            raise Rejected("Telegram no longer has the file")
        if not _is_good(answer.status):
            raise self._refusal("download", answer, decoded(answer.body, _Answer))
        return answer.body, answer.cut

    def _refusal(self, method: str, answer: FetchedResponse, told: _Answer | None) -> Exception:
        if told is None:
            return self._no_answer(method, answer)
        code, said = told.error_code or answer.status, told.description[:DESCRIPTION_MAX_CHARS]
        parameters = told.parameters or _Parameters()
        match code:
            case 400:
                return BadRequest(method, said, parameters.migrate_to_chat_id)
            case 404 if _METHOD_UNKNOWN in said.lower():
                return Rejected(f"the Bot API at {self.host} has no {method}; it may be an old one")
            case 401 | 404:
                return AccountRefused(
                    f"Telegram does not know this bot ({code} {said}); ask @BotFather for its token, and {self._hint}"
                )
            case 409:
                return AccountTaken(f"another program receives the messages of this bot: {said}")
            case 429:
                asked_s = parameters.retry_after or 0
                wait_s = min(asked_s, FLOOD_MAX_S) if asked_s > 0 else FLOOD_S
                return Unavailable(f"Telegram wants a pause: {said}", wait_s)
            case _ if code >= 500:
                return self._trouble(code, said)
            case _:
                return Rejected(f"Telegram refuses {method}: {code} {said}")

    def _no_answer(self, method: str, answer: FetchedResponse) -> Exception:
        """Return what an answer means that is not the Bot API's: that of a proxy, or one that was cut off."""
        if _is_good(answer.status):
            return OutcomeUnknown(f"{self.host} was sent {method}, and its answer cannot be read")
        return self._trouble(answer.status, answer.reason)

    def _trouble(self, code: int, said: str) -> Exception:
        told = f"{self.host} cannot answer now: {code} {said}".rstrip()
        # The proxy before the Bot API had handed the request on.
        return OutcomeUnknown(told) if code == _GATEWAY_TIMEOUT else Unavailable(told)

    @contextlib.contextmanager
    def _masked(self) -> Generator[None]:
        """Keep the token out of errors that name an address."""
        try:
            yield
        except Unavailable as error:
            raise Unavailable(self._without_token(error), error.retry_after_s) from None
        except Rejected as error:
            raise Rejected(self._without_token(error)) from None

    def _without_token(self, error: Exception) -> str:
        return str(error).replace(self._token, "…").replace(quote(self._token), "…")


def _is_good(status: int) -> bool:
    return status in range(200, 300)


def decoded(body: bytes | msgspec.Raw, shape: type[Shape]) -> Shape | None:
    """Return what a body says; None where it is not JSON of that shape."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(body, type=shape)
    with contextlib.suppress(ValueError, RecursionError):
        # Half a surrogate pair must not make all updates around it unreadable.
        text = json.dumps(json.loads(bytes(body)), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(text, type=shape)
    return None


def _encoded(parameters: Mapping[str, object], file: tuple[str, LocalFile] | None) -> tuple[bytes, str]:
    """Return the body of a call, and its type: JSON, or a form with the file in it."""
    if file is None:
        return msgspec.json.encode(parameters), "application/json"
    boundary = secrets.token_hex(16)
    field, sent = file
    parts = [
        _part(boundary, name, value.encode() if isinstance(value, str) else msgspec.json.encode(value))
        for name, value in parameters.items()
    ]
    parts.append(_part(boundary, field, sent.content, sent))
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _part(boundary: str, name: str, content: bytes, file: LocalFile | None = None) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
    if file:
        head += f'; filename="{_quoted(file.name)}"\r\nContent-Type: {_quoted(file.media_type)}'
    return f"{head}\r\n\r\n".encode() + content + b"\r\n"


def _quoted(text: str) -> str:
    """Return a text that cannot end the header it stands in."""
    plain = "".join(each if each.isprintable() else "_" for each in text)
    return plain.replace('"', "%22").encode("utf-8", "replace").decode()
