"""An operation: a method of a service, with its HTTP address declared beside it.

What it takes follows from its signature, in this order:

- The first arguments are the parameters of the path, one after the other.
- An argument whose type is a dataclass is the JSON body.
- An argument with a `Header` in its annotation is that header.
- Every other argument is a parameter of the query: text, a whole number, yes or no, or one of the words of a `StrEnum`.
  A `Query` in its annotation says what it means.

What it gives is the type that it returns.  The routes, the OpenAPI document and the client are all derived from this, so
an operation is written once.  Signatures are read when they are first needed, because commands have to start fast.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, is_dataclass
from enum import StrEnum
from types import MappingProxyType, UnionType
from typing import Annotated, Any, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from holdfast.core.keys import API

# The size of a body, in bytes.
BODY_MAX = 1024 * 1024
# How long a client waits for an answer.
TIMEOUT_S = 30
# Whole numbers have at most 18 digits.
NUMBER_MAX = 10**18 - 1

F = TypeVar("F", bound=Callable[..., object])
_DECLARED = "__holdfast_operation__"
_IN_PATH = re.compile(r"{(\w+)(?::\w+)?}")


class Retry(StrEnum):
    """When a client sends the same request again because the gateway went away."""

    NEVER = "never"
    # The gateway was not there, so it has not heard the request.
    UNHEARD = "unheard"
    # The answer may have been lost as well: the operation does the same thing once, however often it is asked for.
    ALWAYS = "always"


class Location(StrEnum):
    """Where a parameter stands in a request."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"


@dataclass(frozen=True, slots=True)
class Query:
    """What a parameter of a query means.  It has the name of its argument, unless `name` gives it another one.

    A number below `least` is refused; one above `most` counts as `most`.
    """

    meaning: str
    _: KW_ONLY
    name: str = ""
    least: int = 0
    most: int = NUMBER_MAX


@dataclass(frozen=True, slots=True)
class Header:
    """A header, and what it means."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something besides the body that an operation looks at.  `kind` is `str`, `int`, `bool` or a `StrEnum`.

    `argument` is its name in the method and `name` that in a request.  Where it is missing it has its `default`.
    """

    argument: str
    name: str
    location: Location
    kind: type[str | int]
    default: Any = None
    required: bool = False
    meaning: str = ""
    least: int = 0
    most: int = NUMBER_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBody:
    """The argument that is the JSON body."""

    argument: str
    kind: type


@dataclass(frozen=True, kw_only=True, eq=False)  # Without slots, because what is derived is kept beside it.
class Operation:
    """What is declared beside a method, and what follows from its signature.

    `scope` is what the key of the caller must cover; with None no key is asked for.  `also` are further statuses of the
    same answer, `refuses` those of unusual refusals.  `long_list` names a list in its answer that is written item by item,
    because all of it at once would keep others waiting.  `offline` operations read the store of a gateway that does not run.
    """

    function: Callable[..., Awaitable[object]]
    method: str
    path: str
    summary: str
    scope: str | None
    status: int
    also: tuple[int, ...]
    refuses: tuple[int, ...]
    body_max: int
    timeout_s: float
    retry: Retry
    long_list: str
    offline: bool

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return what it looks at besides its body.  Raises `TypeError` for a signature that cannot be asked for."""
        return tuple(each for each in self._arguments if isinstance(each, Parameter))

    @functools.cached_property
    def body(self) -> JsonBody | None:
        return next((each for each in self._arguments if isinstance(each, JsonBody)), None)

    @functools.cached_property
    def gives(self) -> Any:
        """Return the type of its answer."""
        return self._hints["return"]

    @functools.cached_property
    def _hints(self) -> Mapping[str, Any]:
        return get_type_hints(self.function, include_extras=True)

    @functools.cached_property
    def _arguments(self) -> tuple[Parameter | JsonBody, ...]:
        in_path = iter(_IN_PATH.findall(self.path))
        _, *arguments = self.signature.parameters.values()
        found = [self._argument(each, next(in_path, None)) for each in arguments]
        if unused := next(in_path, None):
            raise self._unfit(f"has no argument for {unused!r} of its path")
        if sum(isinstance(each, JsonBody) for each in found) > 1:
            raise self._unfit("has two bodies")
        return tuple(found)

    def _argument(self, argument: inspect.Parameter, in_path: str | None) -> Parameter | JsonBody:
        hint, name = self._hints[argument.name], argument.name
        said = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
        kind = _kind(hint)
        if in_path is not None:
            if kind is not str:
                raise self._unfit(f"takes {name} from its path, which is text")
            return Parameter(argument=name, name=in_path, location=Location.PATH, kind=str, required=True)
        if isinstance(kind, type) and is_dataclass(kind):
            return JsonBody(argument=name, kind=kind)
        if kind not in (str, int, bool) and not (isinstance(kind, type) and issubclass(kind, StrEnum)):
            raise self._unfit(f"takes {name}, which is neither text, a number, yes or no, one of some words nor a body")
        required = argument.default is argument.empty
        if required and kind is not str:
            raise self._unfit(f"takes {name}, which needs a default")
        default = "" if required else argument.default
        match next((each for each in said if isinstance(each, Query | Header)), None):
            case Query() as query:
                return Parameter(
                    argument=name,
                    name=query.name or name,
                    location=Location.QUERY,
                    kind=kind,
                    default=default,
                    required=required,
                    meaning=query.meaning,
                    least=query.least,
                    most=query.most,
                )
            case Header() as header if kind is str:
                meaning = header.meaning
                return Parameter(
                    argument=name, name=header.name, location=Location.HEADER, kind=str, default=default, meaning=meaning
                )
            case _:
                raise self._unfit(f"does not say what {name} means")

    def _unfit(self, problem: str) -> TypeError:
        return TypeError(f"{self.function.__qualname__} {problem}")


def operation(
    address: str,
    summary: str,
    *,
    scope: str | None = API,
    status: int = 200,
    also: tuple[int, ...] = (),
    refuses: tuple[int, ...] = (),
    body_max: int = BODY_MAX,
    timeout_s: float = TIMEOUT_S,
    retry: Retry = Retry.NEVER,
    long_list: str = "",
    offline: bool = False,
) -> Callable[[F], F]:
    """Declare where a method of a service is asked for; an address is a method and a path, like `GET /api/jobs/{id}`."""
    method, _, path = address.partition(" ")

    def declare(function: F) -> F:
        function.__dict__[_DECLARED] = Operation(
            function=cast("Callable[..., Awaitable[object]]", function),
            method=method,
            path=path,
            summary=summary,
            scope=scope,
            status=status,
            also=also,
            refuses=refuses,
            body_max=body_max,
            timeout_s=timeout_s,
            retry=retry,
            long_list=long_list,
            offline=offline,
        )
        return function

    return declare


@functools.cache
def operations(service: type) -> Mapping[str, Operation]:
    """Return the operations of a service by the names of their methods, in the order in which they are written."""
    methods = ((name, each) for name, each in vars(service).items() if inspect.isfunction(each))
    found = ((name, vars(each).get(_DECLARED)) for name, each in methods)
    return MappingProxyType({name: each for name, each in found if isinstance(each, Operation)})


def _kind(hint: Any) -> Any:
    """Return the type that a hint is about, without its remarks, its other name and whether it may be missing."""
    if get_origin(hint) is Annotated:
        return _kind(get_args(hint)[0])
    if isinstance(hint, NewType):
        return _kind(hint.__supertype__)
    if get_origin(hint) in (Union, UnionType):
        kinds = [each for each in get_args(hint) if each is not type(None)]
        return _kind(kinds[0]) if len(kinds) == 1 else hint
    return hint
