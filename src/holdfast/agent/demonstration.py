"""The demonstration agent, which answers when no model is set up.

It says what it is, repeats the message, and does a few things on request, so that everything Holdfast does around a turn can
be tried.  Requests are done in the order of the message.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.scripted import Ask, CallTool, Fail, FunctionTool, Line, Pause, Say, ScriptedAgent, Think, UseTool
from holdfast.agent.toolbox import Toolbox
from holdfast.clock import Clock, SystemClock
from holdfast.core.effects import Call, CallState, Effect
from holdfast.core.transcript import Role
from holdfast.errors import Rejected
from holdfast.ports import Assignment

WORD_MS = 25
SLOW_WORD_MS = 150
# A very long message is repeated faster, so that its turn still ends.
REPEATING_MAX_MS = 60_000
COUNT_MAX = 1_000
WAIT_MAX_S = 600

# What is noted or asked goes on to the end of its line, to a semicolon or to the word "then".
_TEXT = r"(?=\S)[^\n;]+?(?=\s*(?:$|[\n;]|\bthen\b))"
_REQUEST = re.compile(
    rf"\bcount to (?P<count>\d{{1,6}})\b"
    rf"|\bwait (?P<wait>\d{{1,6}}(?:\.\d{{1,3}})?) seconds?\b"
    rf"|(?<!system )\bnote:\s*(?P<note>{_TEXT})"
    rf"|\bask me (?P<ask>{_TEXT})"
    rf"|\brun:\s*(?P<run>{_TEXT})"
    rf"|\bbackground:\s*(?P<background>{_TEXT})"
    rf"|\bdelegate:\s*(?P<delegate>{_TEXT})"
    r"|\bwhat do you (?P<remember>know|remember) about me\b"
    r"|\b(?P<fail>fail)\b",
    re.IGNORECASE,
)
# What the gateway tells by itself, about work that was begun earlier.
_REPORT = re.compile(r"\[System note: (the background [^\n]*?)\. ")
# What comes home from elsewhere may contain the words of this agent itself, which are no requests.
_RESULT = re.compile(r"\[System note: (?:a task that you gave away in|what the person sent to) the background has ended: ")
_SLOWLY = re.compile(r"\bslowly\b", re.IGNORECASE)
_WORD = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")
_EXPLANATION = (
    " Each of these words was in the journal before you saw it. Kill this process in the middle of the sentence and start it"
    " again: nothing you have read will be gone. I also do as I am told, in any order: count to 20, slowly; wait 3 seconds;"
    " note: something; ask me something; run: ls; background: sleep 5; delegate: count to 5; fail. Or say:"
    " remember that I like tea; then /new, and: what do you know about me?"
)


def demonstration(notes: Path | None = None, clock: Clock | None = None, toolbox: Toolbox | None = None) -> ScriptedAgent:
    """Return an agent that needs no model.  `notes` is the file in which it keeps what it is told to note."""
    clock = clock or SystemClock()
    tools = _Tools(wait=WaitTool(clock), keep_note=NoteTool(notes))
    return ScriptedAgent(lambda work: _script(work, tools), clock, heeded=_notice, toolbox=toolbox)


@dataclass(frozen=True, slots=True)
class WaitTool:
    """Waits as long as it is told."""

    clock: Clock
    name: str = "wait"
    effect: Effect = Effect.PURE

    async def run(self, args: Mapping[str, object], key: str) -> str:  # noqa: ARG002 - The shape of a tool.
        await self.clock.sleep_ms(float(str(args["seconds"])) * 1000)
        return f"waited {args['seconds']} s"


@dataclass(frozen=True, slots=True)
class NoteTool:
    """Appends a line to a file: the one thing that this agent does to the world."""

    path: Path | None
    name: str = "keep_note"
    effect: Effect = Effect.EFFECTFUL

    async def run(self, args: Mapping[str, object], key: str) -> str:
        if self.path is None:
            raise Rejected("there is no file for notes")
        await asyncio.to_thread(_append, self.path, f"{key} {args['text']}\n")
        return f"kept in {self.path.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    wait: WaitTool
    keep_note: NoteTool


def _append(path: Path, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)


def _count(args: Mapping[str, object], _key: str) -> str:
    words = str(args["text"]).split()
    letters = sum(map(len, words))
    return f"{len(words)} word{'s' * (len(words) != 1)}, {letters} letter{'s' * (letters != 1)}"


COUNTER = FunctionTool("count_words", Effect.PURE, _count)


def _script(work: Assignment, tools: _Tools) -> list[Line]:
    """Return the same lines for every attempt of a turn, so that one that was cut off goes on where it stopped."""
    message = _first(work, Role.USER) or work.message
    if report := _REPORT.match(message):
        return [Say(f"I have heard that {report[1]}.")]
    word_ms = SLOW_WORD_MS if _SLOWLY.search(message) else WORD_MS
    is_result = bool(_RESULT.match(message))
    requests = [] if is_result else list(_REQUEST.finditer(message))
    repeating_ms = min(word_ms, REPEATING_MAX_MS / (message.count(" ") + 1))
    lines: list[Line] = [
        Think(_first(work, Role.REASONING) or _thought(work)),
        UseTool(COUNTER, {"text": message}),
        *_streamed(f"I am Holdfast's demonstration agent, not a model. You wrote: “{message}”.", repeating_ms),
    ]
    for request in requests:
        lines += _perform(request, tools, word_ms)
    return lines if requests or is_result else [*lines, *_streamed(_EXPLANATION, word_ms)]


def _notice(added: str) -> str:
    return f" (I noticed that you added: “{added}”.)"


def _first(work: Assignment, role: Role) -> str:
    return next((item.text for item in work.history if item.turn_id == work.turn.id and item.role is role), "")


def _thought(work: Assignment) -> str:
    note, found, _ = work.message.partition("]\n\n")
    told = f" Holdfast put a note before this message: {note}]" if found and note.startswith("[System note:") else ""
    return f"No model is set up, so I only show how a turn travels.{told}"


def _perform(request: re.Match[str], tools: _Tools, word_ms: float) -> Sequence[Line]:
    kind, said = request.lastgroup, request[request.lastgroup or 0]
    match kind:
        case "count":
            return [*_streamed(_numbers(int(said)), word_ms)]
        case "wait":
            seconds = min(float(said), WAIT_MAX_S)
            longest = ", which is as long as I ever wait" if float(said) > WAIT_MAX_S else ""
            unit = "second" if seconds == 1 else "seconds"
            return [UseTool(tools.wait, {"seconds": seconds}, _reporting(f"I waited {seconds:g} {unit}{longest}."))]
        case "note":
            return [UseTool(tools.keep_note, {"text": said}, _reporting("I kept your note."))]
        case "ask":
            return [Ask(said, lambda answer: f" You answered: “{answer}”.")]
        case "run":
            return [CallTool("terminal", {"command": said}, _printed)]
        case "background":
            args = {"command": said, "background": True, "notify_on_complete": True}
            return [CallTool("terminal", args, _reporting("It runs in the background, and you will hear when it ends."))]
        case "delegate":
            return [CallTool("delegate_task", {"goal": said}, _reporting("A helper did it, in a session of its own."))]
        case "remember":
            return [CallTool("memory", {"action": "list"}, _remembered)]
        case _:
            return [Fail("you asked me to fail, and so I did")]


def _numbers(last: int) -> str:
    counted = " ".join(map(str, range(1, min(last, COUNT_MAX) + 1)))
    return f" {counted}." if last <= COUNT_MAX else f" {counted}, and no further."


def _reporting(done: str) -> Callable[[Call], str]:
    def report(call: Call) -> str:
        match call.state:
            case CallState.OK:
                return f" {done}"
            case CallState.UNKNOWN:
                return f" Whether {call.name} had its effect is not known: I was cut off, and did not try again."
            case _:
                return f" {call.name} failed: {call.result}."

    return report


def _printed(call: Call) -> str:
    return f" The terminal said:\n\n```\n{call.result}\n```\n" if call.state is CallState.OK else _reporting("")(call)


def _remembered(call: Call) -> str:
    if call.state is not CallState.OK:
        return _reporting("")(call)
    facts = [text for _, found, text in (line.partition(": ") for line in str(call.result).splitlines()) if found]
    return "\n\n".join((" This I know about you:", "\n".join(f"- {each}" for each in facts))) if facts else " Nothing yet."


def _streamed(text: str, word_ms: float) -> Iterator[Line]:
    for word in _WORD.findall(text):
        yield Say(word)
        yield Pause(word_ms)
