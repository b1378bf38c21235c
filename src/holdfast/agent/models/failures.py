"""Translates failures of a model server into Holdfast's errors.  No secret reaches a message."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit

import msgspec

from holdfast.agent.models.providers import ResolvedProvider
from holdfast.core.redaction import MASK
from holdfast.egress import retry_after_s
from holdfast.errors import ContextTooLong, ModelRejected, ModelUnavailable, ModelUnusable

# A server's own error message is cut to this length.
SAID_MAX_CHARS = 300

_MAY_PASS = frozenset({408, 409, 423, 425, 429})
_MOVED = frozenset({301, 302, 303, 307, 308})
_TOO_LONG = re.compile(
    r"context.?(length|window|limit|size)|prompt (is )?too long|maximum prompt length|input is too long|too many tokens"
    r"|input token count|tokens allowed|reduce the length|request too large|inputs` tokens \+",
    re.IGNORECASE,
)
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_NO_CREDIT = re.compile(
    r"credit balance|insufficient.?(quota|balance|credit|funds)|exceeded your current quota", re.IGNORECASE
)
# An error inside a stream has no status; its type implies one.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
_STATUS_MIN = 400
_BROKEN = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """The address of a model.  Errors name the settings, so that the operator knows what to change."""

    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(default="", repr=False)
    name_setting: str = "model.name"
    url_setting: str = "model.base_url"
    key_setting: str = "model.api_key"
    stall_timeout_s: float = 120

    @classmethod
    def at(
        cls,
        resolved: ResolvedProvider,
        name: str,
        path: str,
        headers: Mapping[str, str],
        name_setting: str,
        stall_timeout_s: float,
    ) -> Self:
        """Return the endpoint of one model at its provider."""
        usual = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
        return cls(
            name=name,
            url=resolved.base_url + path,
            headers={**usual, **headers},
            secret=resolved.key,
            name_setting=name_setting,
            url_setting=resolved.url_setting,
            key_setting=resolved.key_setting,
            stall_timeout_s=stall_timeout_s,
        )

    @property
    def place(self) -> str:
        """The address without anything that could be a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class Fault(msgspec.Struct):
    """An error as both formats describe it."""

    message: str | None = None
    type: str | None = None
    code: str | int | None = None


class _Body(msgspec.Struct):
    error: Fault | str | None = None
    message: str | None = None
    detail: str | None = None


_body = msgspec.json.Decoder(_Body)


def of_status(endpoint: ModelEndpoint, status: int, headers: Mapping[str, str], body: bytes, now_ms: int) -> Exception:
    """Return the error for a response other than 200."""
    if status in _MOVED:
        return ModelUnusable(f"{endpoint.name}: {endpoint.place} has moved; set {endpoint.url_setting} to its new address")
    return _named(endpoint, status, _fault(body), retry_after_s(headers, now_ms))


def of_event(endpoint: ModelEndpoint, fault: Fault | str) -> Exception:
    """Return the error for a failure that a server reports inside a stream."""
    fault = fault if isinstance(fault, Fault) else Fault(message=fault)
    status = (
        fault.code if isinstance(fault.code, int) and fault.code >= _STATUS_MIN else _STATUS.get(fault.type or "", _BROKEN)
    )
    return _named(endpoint, status, fault, None)


def of_transport(endpoint: ModelEndpoint, error: Exception) -> ModelUnavailable:
    """Return the error for a failed connection attempt."""
    causes = list(_causes(error))
    if any(isinstance(each, ssl.SSLError) for each in causes):
        certificate = next((each for each in causes if isinstance(each, ssl.SSLCertVerificationError)), None)
        reason = (
            f"its certificate is not trusted ({certificate.verify_message})" if certificate else "the TLS handshake failed"
        )
    else:
        reason = next((_reason(each) for each in causes if isinstance(each, OSError)), "no connection")
    return ModelUnavailable(f"{endpoint.name}: cannot reach {endpoint.place}: {reason}")


def _named(endpoint: ModelEndpoint, status: int, fault: Fault, wait_s: float | None) -> Exception:
    said = _said(endpoint, fault)
    known = f"{fault.type} {fault.code} {fault.message}"
    if status == 402 or (status not in (401, 403) and _NO_CREDIT.search(known)):
        return ModelUnusable(f"{endpoint.name}: the account behind {endpoint.key_setting} has no credit left{said}")
    if status == 413 or {fault.type, fault.code} & _TOO_LONG_CODES or (status < _BROKEN and _TOO_LONG.search(known)):
        return ContextTooLong(f"{endpoint.name}: the conversation is too long for this model{said}")
    match status:
        case 401 | 403:
            # The message is left out because vendors repeat the key in it.
            what = "refuses the key" if endpoint.secret else "wants a key"
            return ModelUnusable(f"{endpoint.name}: {endpoint.place} {what} (HTTP {status}); check {endpoint.key_setting}")
        case 404 | 405:
            return ModelUnusable(
                f"{endpoint.name}: {endpoint.place} does not know this model or address (HTTP {status}); "
                f"check {endpoint.name_setting} and {endpoint.url_setting}{said}"
            )
        case _ if status in _MAY_PASS or status >= _BROKEN:
            return ModelUnavailable(f"{endpoint.name}: cannot answer now (HTTP {status}){said}", wait_s)
        case _:
            return ModelRejected(f"{endpoint.name}: refuses this request (HTTP {status}){said}")


def _said(endpoint: ModelEndpoint, fault: Fault) -> str:
    message = " ".join((fault.message or "").split())
    if endpoint.secret:
        message = message.replace(endpoint.secret, MASK)
    if len(message) > SAID_MAX_CHARS:
        message = message[:SAID_MAX_CHARS] + "…"
    return f": {message}" if message else ""


def _fault(body: bytes) -> Fault:
    try:
        told = _body.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body.decode("utf-8", "replace")
        return Fault(message="" if "<" in text else text)
    match told.error:
        case Fault():
            return told.error
        case str():
            return Fault(message=told.error)
        case None:
            return Fault(message=told.message or told.detail)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    # The system's text says more than the event loop's.
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or "no connection"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
