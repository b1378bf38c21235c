"""Jobs: functions that run in a child process, and how a call and its result are written on the pipe.

A job is a function of one argument at the top of a module, marked with `@job`.  The child finds it by its name, and
msgspec encodes the argument and the result by their annotations.
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

# A frame on the pipe is its length and then its content.
HEAD_BYTES = 4
INPUT_MAX_BYTES = 64 * 1024 * 1024
OUTPUT_MAX_BYTES = 16 * 1024 * 1024
# Errors that a job may raise on purpose.  Each of them is made from its message.
_RAISED: tuple[type[errors.HoldfastError], ...] = (errors.Rejected, errors.NotFound, errors.Unavailable, errors.DiskFull)


@dataclass(frozen=True, slots=True)
class Job(Generic[A, R]):
    """A function that a child process can run."""

    function: Callable[[A], R]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}:{self.function.__name__}"

    def __call__(self, argument: A) -> R:
        """Run it here and now."""
        return self.function(argument)

    def types(self) -> tuple[object, object]:
        """Return the types of the argument and of the result."""
        return _types(self.function)


def job(function: Callable[[A], R]) -> Job[A, R]:
    """Mark a function as a job."""
    return Job(function)


@cache
def _types(function: Callable[..., object]) -> tuple[object, object]:
    hints = get_type_hints(function)
    result = hints.pop("return")
    (argument,) = hints.values()
    return argument, result


class Call(msgspec.Struct, array_like=True, kw_only=True):
    """What the child is sent: which job to run, on what, and how many seconds of CPU time it may use."""

    job: str
    argument: bytes
    cpu_s: int


class Reply(msgspec.Struct, array_like=True, kw_only=True):
    """What the child answers: a result, or the name and the message of an error."""

    result: bytes | None = None
    error: str = ""
    message: str = ""


OUT_OF_MEMORY = "MemoryError"


def find(name: str) -> Job[object, object]:
    """Return the job with a name.  Raises `LookupError` for a function that is not marked as one."""
    module, _, function = name.partition(":")
    found: object = getattr(importlib.import_module(module), function, None)
    if not isinstance(found, Job):
        raise LookupError(f"{name} is not a job")  # noqa: TRY004 - The name is wrong, not a type.
    return cast("Job[object, object]", found)


def failure(error: Exception) -> Reply:
    """Return the reply for an error; its class is named where the parent can raise it again."""
    known = next((each for each in type(error).__mro__ if each in _RAISED), type(error))
    return Reply(error=known.__name__, message=str(error))


def raised(reply: Reply) -> Exception | None:
    """Return the error that a job raised on purpose; None where it crashed."""
    for each in _RAISED:
        if each.__name__ == reply.error:
            return each(reply.message)
    return None
