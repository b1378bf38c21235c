"""The demonstration agent: what answers when no model is set up.  It says what it is, streams, and calls a tool."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from holdfast.agent.scripted import FunctionTool, Line, Pause, Say, ScriptedAgent, Think, Use
from holdfast.core.effects import Effect
from holdfast.ports import Assignment

WORD_MS = 25


def _count(args: Mapping[str, object], _key: str) -> str:
    words = str(args["text"]).split()
    return f"{len(words)} words, {sum(map(len, words))} letters"


COUNTER = FunctionTool("count_words", Effect.PURE, _count)


def demonstration() -> ScriptedAgent:
    """Return an agent that needs no model."""
    return ScriptedAgent(_script)


def _script(work: Assignment) -> list[Line]:
    said = work.message.rpartition("]\n\n")[2] if work.message.startswith("[System note:") else work.message
    return [
        Think("No model is set up, so I only show how a turn travels."),
        Use(COUNTER, {"text": said}),
        *_streamed(
            f"I am Holdfast's demonstration agent, not a model. You wrote: “{said}”. "
            "Each of these words was in the journal before you saw it. "
            "Kill this process in the middle of the sentence and start it again: nothing you have read will be gone."
        ),
    ]


def _streamed(text: str) -> Iterator[Line]:
    words = text.split(" ")
    spoken = [Say(f"{word} ") for word in words[:-1]] + [Say(words[-1])]
    return itertools.chain.from_iterable((word, Pause(WORD_MS)) for word in spoken)
