"""Payloads: the body of a delivery, as JSON or as a form, and its event type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qsl

import msgspec

from holdfast.channels.webhook.head import Head
from holdfast.errors import Rejected

FORM = "application/x-www-form-urlencoded"
FORM_FIELDS_MAX = 1_000
# The forms of GitHub and Slack have their JSON in this field.
FORM_FIELD = "payload"
TYPE_MAX = 200
# Slack wraps every event in an object of this type.
_ENVELOPE = "event_callback"


class BadPayload(Rejected):
    """A body that is neither a JSON object nor a form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A parsed body, its raw text, and the event type that the sender named."""

    data: Mapping[str, object]
    raw: str
    event_type: str | None = None


def read(head: Head, body: bytes) -> Payload:
    """Parse the body of a delivery.  Raises `BadPayload`, and `BadHeader` for a bad event type."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise BadPayload(f"the body is not UTF-8 at byte {error.start}") from None
    if head.one("content-type").partition(";")[0].strip().lower() == FORM:
        data, text = _form(text)
    else:
        data = _object(text)
    return Payload(data=data, raw=text, event_type=_event_type(head, data))


def _object(text: str) -> Mapping[str, object]:
    if not text.strip():
        raise BadPayload("the body is empty; send a JSON object")
    try:
        data: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadPayload(f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadPayload('the body must be a JSON object, like {"message": "…"}')
    return cast("Mapping[str, object]", data)


def _form(text: str) -> tuple[Mapping[str, object], str]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=FORM_FIELDS_MAX, errors="strict")
    except ValueError as error:
        raise BadPayload(f"the body is not a valid form: {error}") from None
    if not pairs:
        raise BadPayload("the body is empty; send a form or a JSON object")
    fields = dict(pairs)
    if FORM_FIELD in fields:
        return _object(fields[FORM_FIELD]), fields[FORM_FIELD]
    return fields, text


def _event_type(head: Head, data: Mapping[str, object]) -> str | None:
    said: object = head.one("x-github-event") or head.one("x-gitlab-event") or data.get("type")
    event = data.get("event")
    if said in (None, "", _ENVELOPE):
        inner: object = cast("Mapping[str, object]", event).get("type") if isinstance(event, dict) else None
        said = data.get("event_type") or inner or said
    return said[:TYPE_MAX] if isinstance(said, str) and said else None
