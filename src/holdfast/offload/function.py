"""Functions that run in a child process, and the encoding of their calls and results.

An offloadable function has one argument, stands at the top of a module, and is marked with `@offloadable`.  The child finds
it by name, and msgspec encodes the argument and the result by their annotations.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar, cast, get_type_hints

import msgspec

from holdfast import errors

A = TypeVar("A")
R = TypeVar("R")

# A frame on the pipe is its length followed by its content.
HEAD_BYTES = 4
INPUT_MAX_BYTES = 64 * 1024 * 1024
OUTPUT_MAX_BYTES = 16 * 1024 * 1024
# Errors that a function may raise on purpose.  Each is constructed from its message alone.
_EXPECTED: tuple[type[errors.HoldfastError], ...] = (errors.Rejected, errors.NotFound, errors.Unavailable, errors.DiskFull)


@dataclass(frozen=True, slots=True)
class Offloadable(Generic[A, R]):
    """A function that a child process can run."""

    function: Callable[[A], R]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}:{self.function.__name__}"

    def __call__(self, argument: A) -> R:
        """Run it in this process."""
        return self.function(argument)

    def types(self) -> tuple[object, object]:
        """Return the types of the argument and of the result."""
        return _types(self.function)


def offloadable(function: Callable[[A], R]) -> Offloadable[A, R]:
    """Mark a function that may run in a child process."""
    return Offloadable(function)


@cache
def _types(function: Callable[..., object]) -> tuple[object, object]:
    hints = get_type_hints(function)
    result = hints.pop("return")
    (argument,) = hints.values()
    return argument, result


class OffloadCall(msgspec.Struct, array_like=True, kw_only=True):
    """A request to the child."""

    # The name of an `Offloadable`.
    function: str
    argument: bytes
    # How many seconds of CPU time it may use.
    cpu_s: int


class OffloadReply(msgspec.Struct, array_like=True, kw_only=True):
    """The child's response: a result, or the class name and the message of an error."""

    result: bytes | None = None
    error: str = ""
    message: str = ""


OUT_OF_MEMORY = "MemoryError"


def find(name: str) -> Offloadable[object, object]:
    """Return the function with a name.  Raises `LookupError` if it is not marked as offloadable."""
    module, _, function = name.partition(":")
    found: object = getattr(importlib.import_module(module), function, None)
    if not isinstance(found, Offloadable):
        raise LookupError(f"{name} is not offloadable")  # noqa: TRY004 - The name is wrong, not a type.
    return cast("Offloadable[object, object]", found)


def failure(error: Exception) -> OffloadReply:
    """Return the reply for an error, named by an expected class if it is one, so that the parent can raise it."""
    known = next((each for each in type(error).__mro__ if each in _EXPECTED), type(error))
    return OffloadReply(error=known.__name__, message=str(error))


def expected_error(reply: OffloadReply) -> Exception | None:
    """Return the error that the function raised on purpose; None if it crashed."""
    for each in _EXPECTED:
        if each.__name__ == reply.error:
            return each(reply.message)
    return None
