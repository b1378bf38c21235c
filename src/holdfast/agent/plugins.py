"""Plugins: tools, models and memory of other distributions, found by entry points and loaded once, at the start.

A distribution offers tools in the group `holdfast.tools`.  Each entry point names a callable that takes nothing and returns
a `Tool` (see agent/tools/port.py), or several of them:

    [project.entry-points."holdfast.tools"]
    weather = "holdfast_weather:tools"

It offers models in the group `holdfast.models`.  Each entry point names a callable `(name, config) -> Model` (see
agent/models/port.py); the name of the entry point is that of the provider, and `name` what stands behind it in the
configuration: with `model.name = "acme:large"`, the entry point `acme` is called with "large" and the `[model]` table.

    [project.entry-points."holdfast.models"]
    acme = "holdfast_acme:model"

It offers memory in the group `holdfast.memory`.  Each entry point names a callable that takes the `[memory]` table and
returns a provider (see memory/provider.py); its name is what stands in `memory.provider`.

    [project.entry-points."holdfast.memory"]
    elephant = "holdfast_elephant:provider"

A plugin runs in the process of the gateway, with all its rights.  A plugin that cannot be loaded is reported and left out.
If two plugins use one name, both are left out.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar, cast

from holdfast.agent.models.catalog import ModelMaker
from holdfast.agent.tools.port import NAME, Tool
from holdfast.config import MemoryConfig
from holdfast.core.effects import Effect
from holdfast.ports import MemoryProvider

log = logging.getLogger(__name__)

T = TypeVar("T")

MemoryMaker = Callable[[MemoryConfig], MemoryProvider]

TOOLS_GROUP = "holdfast.tools"
MODELS_GROUP = "holdfast.models"
MEMORY_GROUP = "holdfast.memory"
# Names that no memory plugin may use.
MEMORIES = frozenset({"builtin", "http", "openviking", "none"})
TOOLS_MAX = 64
# The part before the colon in the name of a model or a memory provider.
_PROVIDER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """The loaded plugins.  `problems` says in sentences what was left out; `memory_problems` does so by provider."""

    tools: Sequence[Tool] = ()
    models: Mapping[str, ModelMaker] = field(default_factory=dict[str, ModelMaker])
    memories: Mapping[str, MemoryMaker] = field(default_factory=dict[str, MemoryMaker])
    problems: Sequence[str] = ()
    memory_problems: Mapping[str, str] = field(default_factory=dict[str, str])


def load(tool_names: Collection[str] = (), providers: Collection[str] = ()) -> Plugins:
    """Load every installed plugin.  The given names are built in, and no plugin may use them."""
    installed = _installed()
    problems: list[str] = []
    tools: list[_Found[Tool]] = []
    models: list[_Found[ModelMaker]] = []
    for point in installed[TOOLS_GROUP]:
        try:
            tools += [_Found(name=tool.name, source=_source(point), thing=tool) for tool in _tools(point)]
        except (Exception, SystemExit) as error:  # The edge to a plugin: its bug is its own.
            problems.append(_left_out(point, error))
    for point in installed[MODELS_GROUP]:
        try:
            models.append(_Found(name=point.name, source=_source(point), thing=_maker(point)))
        except (Exception, SystemExit) as error:  # The edge to a plugin: its bug is its own.
            problems.append(_left_out(point, error))
    kept_tools = _without_clashes("tool", tools, tool_names, problems)
    kept_models = _without_clashes("model provider", models, providers, problems)
    memory = _load_memory(installed)
    for problem in problems:
        log.error("%s", problem)
    return Plugins(
        tools=tuple(kept_tools.values()),
        models=kept_models,
        memories=memory.memories,
        problems=(*problems, *memory.problems),
        memory_problems=memory.memory_problems,
    )


def _load_memory(installed: Mapping[str, Sequence[EntryPoint]]) -> Plugins:
    problems: dict[str, list[str]] = {}
    found: list[_Found[MemoryMaker]] = []
    for point in installed[MEMORY_GROUP]:
        try:
            found.append(_Found(name=point.name, source=_source(point), thing=_memory_maker(point)))
        except (Exception, SystemExit) as error:  # The edge to a plugin: its bug is its own.
            problems.setdefault(point.name, []).append(_left_out(point, error))
    kept: dict[str, MemoryMaker] = {}
    for name in sorted({each.name for each in found}):
        claims = [each for each in found if each.name == name]
        kept |= _without_clashes("memory provider", claims, MEMORIES, problems.setdefault(name, []))
    told = [problem for each in problems.values() for problem in each]
    for problem in told:
        log.error("%s", problem)
    by_name = {name: "; ".join(each) for name, each in problems.items() if each}
    return Plugins(memories=kept, problems=tuple(told), memory_problems=by_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found(Generic[T]):
    name: str
    source: str
    thing: T


class _Invalid(Exception):
    """A plugin breaks its contract; the message says how."""


def _installed() -> dict[str, list[EntryPoint]]:
    """Return the installed entry points by group, read once for all groups because that reads a file per distribution."""
    found = importlib.metadata.entry_points()
    return {
        group: sorted(found.select(group=group), key=lambda point: (_source(point), point.name))
        for group in (TOOLS_GROUP, MODELS_GROUP, MEMORY_GROUP)
    }


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"


def _left_out(point: EntryPoint, error: BaseException) -> str:
    why = str(error) if isinstance(error, _Invalid) else f"{type(error).__name__}: {error}"
    return f"The plugin {point.name} of {_source(point)} ({point.value}) is left out: {why}"


def _tools(point: EntryPoint) -> list[Tool]:
    made = _callable(point)()
    several = list(cast("Iterable[object]", made)) if isinstance(made, Iterable) else [made]
    if len(several) > TOOLS_MAX:
        raise _Invalid(f"it has {len(several)} tools; {TOOLS_MAX} is the most")
    for each in several:
        if problem := _wrong_with(each):
            raise _Invalid(problem)
    return cast("list[Tool]", several)


def _maker(point: EntryPoint) -> ModelMaker:
    if not _PROVIDER.fullmatch(point.name):
        raise _Invalid("the name of a provider is lower-case letters, digits, dots, - and _")
    return cast("ModelMaker", _callable(point))


def _memory_maker(point: EntryPoint) -> MemoryMaker:
    if not _PROVIDER.fullmatch(point.name):
        raise _Invalid("the name of a provider is lower-case letters, digits, dots, - and _")
    return cast("MemoryMaker", _callable(point))


def _callable(point: EntryPoint) -> Callable[..., object]:
    loaded = cast("object", point.load())
    if not callable(loaded):
        raise _Invalid(f"it is no callable but {type(loaded).__name__}")
    return loaded


def _wrong_with(tool: object) -> str | None:
    """Return why an object is not a tool; None if it is."""
    kinds = {"name": str, "description": str, "schema": Mapping, "effect": Effect, "harmless": bool}
    for attribute, kind in kinds.items():
        if not isinstance(getattr(tool, attribute, None), kind):
            return f"{tool!r:.200} is no tool: its {attribute} is no {kind.__name__}"
    for method in ("question", "run"):
        if not inspect.iscoroutinefunction(getattr(tool, method, None)):
            return f"{tool!r:.200} is no tool: its {method} is no async method"
    known = cast("Tool", tool)
    if not NAME.fullmatch(known.name):
        return f"{known.name!r:.200} cannot be the name of a tool: it must be 1 to 64 letters, digits, - and _"
    return None if known.schema.get("type") == "object" else f"the schema of the tool {known.name} is of no object"


def _without_clashes(kind: str, found: Sequence[_Found[T]], own: Collection[str], problems: list[str]) -> dict[str, T]:
    """Return the plugins whose name is unique."""
    kept: dict[str, T] = {}
    for name in sorted({each.name for each in found}):
        claims = [each for each in found if each.name == name]
        sources = " and ".join([*["Holdfast itself"] * (name in own), *(each.source for each in claims)])
        if name in own or len(claims) > 1:
            problems.append(f"The {kind} {name} is offered by {sources}; the plugins' are left out")
        else:
            kept[name] = claims[0].thing
    return kept
