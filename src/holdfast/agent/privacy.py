"""The private data that a turn has read, derived from the calls in the journal, so that it survives a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from holdfast.agent.steps import step_of
from holdfast.agent.tools.port import StructTool, Tool
from holdfast.core import delegation
from holdfast.core.effects import CallState
from holdfast.core.transcript import COMPACTED, Role
from holdfast.ids import CallId
from holdfast.ports import Assignment

# The result of a call that was cut off may have been read.
_READ = frozenset({CallState.OK, CallState.UNKNOWN})


def private_reads(work: Assignment, tools: Mapping[str, Tool], call_id: CallId) -> tuple[str, ...]:
    """Return the sources of private data that the model had read when it asked for a call, in words for people.

    Earlier turns count as well, because the model still reads them.  Calls of the same step do not count, because the model
    did not know their results.
    """
    return tuple(dict.fromkeys(_found(work, tools, call_id)))


def _found(work: Assignment, tools: Mapping[str, Tool], call_id: CallId) -> Iterator[str]:
    if delegation.is_private(work.session):
        yield "the conversation that this task comes from"
    for item in work.history:
        if item.kind == COMPACTED:
            # It is not known any more what the summary was made of.
            yield "the summary of this conversation"
        elif item.role is Role.TOOL and item.turn_id != work.turn.id and item.outcome in _READ and item.name:
            yield from [item.name] if _is_private(tools, item.name, item.args) else []
    step = step_of(call_id)
    for call in work.calls:
        before = step_of(call.id)
        earlier = call.id != call_id if step is None or before is None else before < step
        if earlier and call.state in _READ and _is_private(tools, call.name, msgspec.json.decode(call.args)):
            yield call.name


def _is_private(tools: Mapping[str, Tool], name: str, args: object) -> bool:
    tool = tools.get(name)
    if isinstance(tool, StructTool) and isinstance(args, Mapping):
        return tool.is_private(cast("Mapping[str, object]", args))
    # Tools of servers and plugins, and tools that are gone, do not say so.
    return tool is None or not tool.harmless
