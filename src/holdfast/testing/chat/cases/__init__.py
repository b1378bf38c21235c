"""The cases of the suite.  Each is a function of a world, and its name says what it proves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import TypeAlias

from holdfast.testing.chat.cases import asking, choosing, people, receiving, sending, working
from holdfast.testing.chat.world import World

Case: TypeAlias = Callable[[World], Coroutine[None, None, None]]

CASES: tuple[Case, ...] = tuple(
    each
    for module in (receiving, people, sending, asking, choosing, working)
    for name, each in vars(module).items()
    if inspect.iscoroutinefunction(each) and each.__module__ == module.__name__ and not name.startswith("_")
)
