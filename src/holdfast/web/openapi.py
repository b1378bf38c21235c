"""The OpenAPI document: every endpoint as it is declared, so that none can be missing and none can be made up."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.responses import Response

from holdfast import __version__
from holdfast.operations import export
from holdfast.operations.operation import NUMBER_MAX, Location, Parameter
from holdfast.web.endpoints import Endpoint, EndpointCall, Stream
from holdfast.web.requests import ID_MAX

PATH = "/openapi.json"
VERSION = "3.1.0"
JSON = "application/json"
EVENTS = "text/event-stream"
TEXT = "text/plain"
OCTETS = "application/octet-stream"
_COMPONENTS = "#/components/schemas/"
_REFERENCE = re.compile(f'"{_COMPONENTS}([^"]+)"')
# The header that names the request in every answer.
_REQUEST_ID = {"X-Request-Id": {"description": "The name of the request.", "schema": {"type": "string"}}}

# A JSON schema has no closer type in Python.
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """What went wrong, and what to do instead.  Some refusals say more: a state, a turn, the byte of the body, a setting."""

    code: str
    message: str
    hint: str | None
    state: str | None = None
    turn_id: str | None = None
    offset: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What every refusal looks like."""

    error: Error


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Something that is looked at in a query, a header or a path."""

    meaning: str
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


def _number(least: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": least, "maximum": NUMBER_MAX}


def _one_of(kind: type[StrEnum]) -> Mapping[str, object]:
    return {"type": "string", "enum": [each.value for each in kind]}


# A body that is not JSON is described by its media type alone.
_BYTES: Schema = {"schema": {"type": "string", "format": "binary"}}
_FLAG = {"type": "boolean"}
_NAME = {"type": "string", "maxLength": ID_MAX}
# Every parameter of a query; one that means something else at an address is there with that address.
PARAMETERS: Mapping[str, Described] = MappingProxyType(
    {
        "after": Described(meaning="Go on behind this one.", schema=_number(0)),
        "cursor": Described(meaning="Where to go on: the next_cursor of the page before."),
        "format": Described(
            meaning="How it is written; as Markdown unless this says otherwise.", schema=_one_of(export.ExportFormat)
        ),
        "limit": Described(meaning="How many at most.", schema=_number(1)),
        "order": Described(meaning="The oldest first, or the newest.", schema={"type": "string", "enum": ["asc", "desc"]}),
        "q": Described(meaning="Words to look for."),
        "session": Described(meaning="Only what belongs to this session."),
        "starting_after": Described(meaning="Go on behind the event of this sequence_number.", schema=_number(0)),
        "stream": Described(meaning="Answer with events.", schema=_FLAG),
        "/api/uploads name": Described(
            meaning="What the file is called.", schema={"type": "string", "minLength": 1}, required=True
        ),
        "/v1/responses/{id}/input_items after": Described(meaning="Go on behind the item of this id."),
    }
)
HEADERS: Mapping[str, Described] = MappingProxyType(
    {
        "Idempotency-Key": Described(meaning="The same key is the same message, however often it is sent.", schema=_NAME),
        "Last-Event-ID": Described(meaning="The id of the last event that was seen; it goes before `after`.", schema=_NAME),
        "X-Stainless-Retry-Count": Described(
            meaning="Which try of the same request this is, as the official clients count: 0 is the first, and any other "
            "joins the turn of the try before it.",
            schema=_NAME,
        ),
        "X-Session-Key": Described(meaning="Go on in the session of this key.", schema=_NAME),
    }
)
_SECURITY = {
    "key": {"type": "http", "scheme": "bearer", "description": "server.api_key, or what holdfast keys create shows."},
    "browser": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Holdfast-Proof",
        "description": "The signature of a browser that has signed in.",
    },
}


class OpenApi:
    """The description of everything, itself included."""

    def __init__(self, everything: Sequence[Endpoint]) -> None:
        self._everything = everything

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path=PATH,
                handle=self.show,
                summary="Describe everything that can be asked",
                scope=None,
                gives=Mapping[str, object],
            )
        ]

    async def show(self, _call: EndpointCall) -> Response:
        return Response(self._written, media_type=JSON)

    @functools.cached_property
    def _written(self) -> bytes:
        return msgspec.json.encode(document(self._everything))


def document(endpoints: Sequence[Endpoint]) -> Schema:
    """Return the description of endpoints."""
    shapes = _Shapes([kind for each in endpoints for kind in (each.takes, each.gives) if _is_shape(kind)])
    paths: dict[str, Schema] = {}
    for each in endpoints:
        paths.setdefault(_address(each), {})[each.method.lower()] = _described(each, shapes)
    return {
        "openapi": VERSION,
        "info": {"title": "Holdfast", "version": __version__, "description": "An AI-agent gateway that never loses a turn."},
        "paths": paths,
        "components": {
            "schemas": shapes.components,
            "responses": {str(status): _refusal(status, shapes) for status in sorted(_refused(endpoints))},
            "securitySchemes": _SECURITY,
        },
    }


def _is_shape(kind: object) -> bool:
    return kind not in (None, Stream, str, bytes)


class _Shapes:
    """The types of bodies and answers as schemas, under names that people can read."""

    def __init__(self, kinds: Sequence[object]) -> None:
        kinds = [*kinds, Refusal]
        schemas, components = msgspec.json.schema_components(
            kinds, schema_hook=_anything, ref_template=_COMPONENTS + "{name}"
        )
        names = {name: _readable(name) for name in components}
        self.components: Schema = {names[name]: _renamed(each, names) for name, each in components.items()}
        self._of = [(kind, _renamed(schema, names)) for kind, schema in zip(kinds, schemas, strict=True)]

    def of(self, kind: object) -> Schema:
        return next(schema for each, schema in self._of if each == kind)

    def demands(self, schema: Schema) -> bool:
        """Return whether something must be there, so that nothing at all will not do."""
        shape = self.components.get(schema.get("$ref", "").rpartition("/")[2], schema)
        return bool(shape.get("required"))


def _anything(_kind: type) -> Schema:
    return {"description": "Anything that is JSON."}


def _readable(name: str) -> str:
    """Return a name for what the parser calls `Page_Hit_`, or by its module where there are several of a name."""
    if inner := re.fullmatch(r"(\w+?)_(\w+)_", name):
        return f"{inner[1]}Of{inner[2]}"
    if "." in name:
        *_, module, kind = name.split(".")
        return f"{module.title()}{kind}"
    return name


def _renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """Return a schema with its references under the names that people can read."""
    written = msgspec.json.encode(schema).decode()
    return msgspec.json.decode(_REFERENCE.sub(lambda found: f'"{_COMPONENTS}{names[found[1]]}"', written), type=Schema)


def _address(endpoint: Endpoint) -> str:
    # Only the router needs the converter of a path parameter.
    return re.sub(r":\w+}", "}", endpoint.path)


def _described(endpoint: Endpoint, shapes: _Shapes) -> Schema:
    found: Schema = {
        "operationId": _id(endpoint),
        "summary": endpoint.summary,
        "tags": [_tag(endpoint)],
        "parameters": list(_parameters(endpoint)),
        "responses": dict(_answers(endpoint, shapes)),
        "security": [] if endpoint.scope is None else [{"key": []}, {"browser": []}, {}],
    }
    if endpoint.scope is not None:
        found["x-scope"] = endpoint.scope
    if endpoint.takes is bytes:
        found["requestBody"] = {"required": False, "content": {OCTETS: _BYTES}}
    elif endpoint.takes is not None:
        schema = shapes.of(endpoint.takes)
        found["requestBody"] = {"required": shapes.demands(schema), "content": {JSON: {"schema": schema}}}
    return found


def _id(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", _address(endpoint))
    return "_".join([endpoint.method.lower(), *words])


def _tag(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", endpoint.path)
    return words[1] if words[0] in ("api", "v1") else words[0]


def _parameters(endpoint: Endpoint) -> Iterator[Schema]:
    for name in re.findall(r"{(\w+)", endpoint.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": ID_MAX},
        }
    for each in endpoint.parameters:
        if each.location is not Location.PATH:
            described = Described(meaning=each.meaning, schema=_schema(each), required=each.required)
            yield _parameter(each.name, each.location.value, described)
    for name in endpoint.query:
        parameter = PARAMETERS.get(f"{endpoint.path} {name}") or PARAMETERS[name]
        yield _parameter(name, "query", parameter)
    for title in endpoint.headers:
        yield _parameter(title, "header", HEADERS[title])


def _schema(parameter: Parameter) -> Mapping[str, object]:
    if parameter.location is Location.HEADER:
        return _NAME
    if issubclass(parameter.kind, StrEnum):
        return _one_of(parameter.kind)
    if parameter.kind is bool:
        return _FLAG
    return _number(parameter.least) if parameter.kind is int else {"type": "string"}


def _parameter(name: str, place: str, parameter: Described) -> Schema:
    return {
        "name": name,
        "in": place,
        "description": parameter.meaning,
        "required": parameter.required,
        "schema": dict(parameter.schema),
    }


def _answers(endpoint: Endpoint, shapes: _Shapes) -> Iterator[tuple[str, Schema]]:
    answer = {"description": endpoint.summary, "headers": _REQUEST_ID, "content": _content(endpoint, shapes)}
    for status in (endpoint.status, *endpoint.also):
        yield str(status), answer
    for status in refusals(endpoint):
        yield str(status), {"$ref": f"#/components/responses/{status}"}


def _refused(endpoints: Sequence[Endpoint]) -> set[int]:
    return {status for each in endpoints for status in refusals(each)}


def _refusal(status: int, shapes: _Shapes) -> Schema:
    content = {JSON: {"schema": shapes.of(Refusal)}}
    return {"description": HTTPStatus(status).phrase, "headers": _REQUEST_ID, "content": content}


def _content(endpoint: Endpoint, shapes: _Shapes) -> Schema:
    if endpoint.gives is Stream:
        return {EVENTS: {"schema": {"type": "string"}}}
    if endpoint.gives is str:
        return {TEXT: {"schema": {"type": "string"}}}
    if endpoint.gives is bytes:
        return {media: {"schema": {}} if media == JSON else _BYTES for media in endpoint.media}
    if endpoint.gives is None:
        return {}
    found: Schema = {JSON: {"schema": shapes.of(endpoint.gives)}}
    if endpoint.streams:
        found[EVENTS] = {"schema": {"type": "string"}}
    return found


def refusals(endpoint: Endpoint) -> list[int]:
    """Return with which statuses an endpoint may refuse."""
    found = {400, 403, 421, 429, 503}
    if endpoint.scope is not None:
        found.add(401)
    if "{" in endpoint.path or endpoint.parameters or endpoint.query or endpoint.takes is not None:
        # The id in the request may not exist.
        found.add(404)
    if endpoint.method != "GET":
        found.add(409)
    if endpoint.takes is not None:
        found |= {408, 413, 415, 422}
    return sorted(found | set(endpoint.refuses))
