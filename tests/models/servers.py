"""A scripted model server on loopback: both wire formats, and every way in which a model server fails.

    python -m tests.models.servers --port 0 [--script "say hello"]        prints its port

What it answers is a script.  It is looked for in the request: the model's name, where it is one of `SCENES`; else the last
message of the person, behind `script: ` at the beginning of a line; else the server's own, which is `echo` unless it was
told another.  An answer that was cut off goes on with the script that it had, and `stream` with the word that is next.

With `--record FILE` every request leaves a line there when it arrives, and another when it was answered in full.  One that
no vendor would take is then refused, and says why.

A script has one part for each step of a turn, divided by ` | `; its last part answers all further steps.  A part is a list
of actions, divided by `; `:

    say TEXT · think TEXT       one piece of text or reasoning
    echo · result               says what the person said, or what the last tool call gave
    stream N at R               N tokens at R per second; at 0 as fast as they are taken
    count N at R                the first word of the message, then N numbered words in the same way
    call NAME {JSON}            a tool call in pieces; several in one part are parallel
    whole NAME {JSON}           a tool call in one piece
    usage IN OUT CACHED         the numbers at the end
    stop REASON                 ends the answer as it says, in the words of the wire format
    first N ACTION              only for the first N requests with this script
    storm S                     answers 429 with `retry-after 1` until S seconds after the first request of all
    status CODE [HEADER VALUE]  answers with this status, and with one header, such as `retry-after 2`
    says CODE TEXT              answers with this status and message, in the shape of the vendor
    cut · stall · hang          closes in the middle; sends nothing more; does not even begin to answer
    garbage N · error TYPE      events that are no JSON; an error inside the stream
    pings N every S             signs of life
    html · endless · huge       a web page; a line without end; an answer without end
    plain                       one piece of JSON, not a stream (OpenAI only)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.http_server import read, serving
from tests.models.forms import problems

SCENES = {
    "echo": "echo",
    "tokens": "stream 200 at 60",
    "fast": "stream 2000 at 0",
    "held": "stream 20 at 0; first 1 hang",
}
_HTML = b"<!doctype html><html><body>Sign in to the network</body></html>"
_PIECE = 7
# A message may have a word before its script, by which its sender knows it again.
_SCRIPT = re.compile(r"^(?:\S+ )?script: (?P<script>.*)$", re.MULTILINE)
_GO_ON = "[Note of the gateway: your answer was cut off"


class Over(Exception):
    """The answer ends here, one way or another."""


@dataclass
class Seen:
    """One request, as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class OpenAIWire:
    """How chat completions are streamed."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._calls = itertools.count()

    def start(self) -> bytes:
        return self._choice({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self._choice({"content": text})

    def thought(self, text: str) -> bytes:
        return self._choice({"reasoning_content": text})

    def call(self, name: str, args: str, *, whole: bool) -> bytes:
        index = next(self._calls)
        named = {
            "index": index,
            "id": f"call_{index}_{name}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        if whole:
            named["function"] = {"name": name, "arguments": args}
            return self._choice({"tool_calls": [named]})
        pieces = [{"index": index, "function": {"arguments": each}} for each in _pieces(args)]
        return b"".join(self._choice({"tool_calls": [each]}) for each in [named, *pieces])

    def stop(self, reason: str | None, usage: tuple[int, int, int]) -> bytes:
        reason = reason or ("tool_calls" if next(self._calls) else "stop")
        numbers = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": usage[0] + usage[1],
            "prompt_tokens_details": {"cached_tokens": usage[2]},
        }
        last = self._event({"choices": [], "usage": numbers})
        return self._choice({}, reason) + last + b"data: [DONE]\n\n"

    def error(self, kind: str) -> bytes:
        return _event({"error": {"message": f"it failed: {kind}", "type": kind, "code": None}})

    def ping(self) -> bytes:
        return b": still here\n\n"

    def failure(self, status: int, text: str) -> bytes:
        return json.dumps(
            {"error": {"message": text, "type": "invalid_request_error", "code": None, "param": status}}
        ).encode()

    def _choice(self, delta: object, reason: str | None = None) -> bytes:
        return self._event({"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]})

    def _event(self, fields: dict[str, object]) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": self._model}
        return _event(head | fields)


class AnthropicWire:
    """How messages are streamed."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks = itertools.count()
        self._open: tuple[int, str] | None = None
        self._called = False

    def start(self) -> bytes:
        usage = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "usage": usage,
        }
        return _event({"type": "message_start", "message": message}, "message_start") + self.ping()

    def text(self, text: str) -> bytes:
        begun = self._begin("text", {"type": "text", "text": ""})
        return begun + self._delta({"type": "text_delta", "text": text})

    def thought(self, text: str) -> bytes:
        begun = self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return begun + self._delta({"type": "thinking_delta", "thinking": text})

    def call(self, name: str, args: str, *, whole: bool) -> bytes:
        self._called = True
        block = {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": json.loads(args) if whole else {}}
        begun = self._close() + self._begin("tool_use", block)
        pieces = [] if whole else _pieces(args)
        return (
            begun
            + b"".join(self._delta({"type": "input_json_delta", "partial_json": each}) for each in pieces)
            + self._close()
        )

    def stop(self, reason: str | None, usage: tuple[int, int, int]) -> bytes:
        reason = reason or ("tool_use" if self._called else "end_turn")
        numbers = {"input_tokens": usage[0] - usage[2], "cache_read_input_tokens": usage[2], "output_tokens": usage[1]}
        delta = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": numbers}
        return self._close() + _event(delta, "message_delta") + _event({"type": "message_stop"}, "message_stop")

    def error(self, kind: str) -> bytes:
        return _event({"type": "error", "error": {"type": kind, "message": f"it failed: {kind}"}}, "error")

    def ping(self) -> bytes:
        return _event({"type": "ping"}, "ping")

    def failure(self, status: int, text: str) -> bytes:
        kind = "invalid_request_error" if status == 400 else "api_error"
        return json.dumps({"type": "error", "error": {"type": kind, "message": text}}).encode()

    def _begin(self, kind: str, block: object) -> bytes:
        if self._open and self._open[1] == kind != "tool_use":
            return b""
        closed = self._close()
        index = next(self._blocks)
        self._open = index, kind
        return closed + _event(
            {"type": "content_block_start", "index": index, "content_block": block}, "content_block_start"
        )

    def _delta(self, delta: object) -> bytes:
        assert self._open
        return _event({"type": "content_block_delta", "index": self._open[0], "delta": delta}, "content_block_delta")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        (index, kind), self._open = self._open, None
        signed = b""
        if kind == "thinking":
            delta = {"type": "signature_delta", "signature": f"signed-{index}"}
            signed = _event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        return signed + _event({"type": "content_block_stop", "index": index}, "content_block_stop")


Wire = OpenAIWire | AnthropicWire


@dataclass
class Answer:
    """One answer on its way out."""

    wire: Wire
    writer: asyncio.StreamWriter
    request: Seen
    begun: bool = False
    reason: str | None = None
    usage: tuple[int, int, int] = (10, 5, 0)

    async def send(self, data: bytes) -> None:
        if not self.begun:
            self.begun = True
            self.writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                + _chunk(self.wire.start())
            )
        self.writer.write(_chunk(data))
        await self.writer.drain()

    async def whole(self, status: int, body: bytes, kind: str = "application/json", headers: str = "") -> None:
        """Answer with one body, and end."""
        head = f"HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
        self.writer.write(head.encode() + body)
        await self.writer.drain()
        raise Over

    async def end(self) -> None:
        await self.send(self.wire.stop(self.reason, self.usage))
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()


@dataclass
class ModelServer:
    """Answers by script.  `requests` are those that have arrived; `connections` is how many were made."""

    script: str = "echo"
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    record: Path | None = None
    _done: Counter[str] = field(default_factory=Counter)
    _began_at: float = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @contextlib.asynccontextmanager
    async def running(self, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[ModelServer]:
        async with serving(self._serve, port, tls=tls) as self.port:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while asked := await read(reader):
            request = Seen(asked.path, asked.headers, json.loads(asked.body or b"{}"))
            self.requests.append(request)
            await self._answer(request, writer)

    async def _answer(self, request: Seen, writer: asyncio.StreamWriter) -> None:
        wire_type = AnthropicWire if request.path.endswith("/messages") else OpenAIWire
        model = str(request.body.get("model", ""))
        answer = Answer(wire_type(model), writer, request)
        with contextlib.suppress(Over):
            if request.path.endswith("/models"):
                await answer.whole(200, json.dumps({"object": "list", "data": [{"id": each} for each in SCENES]}).encode())
            found = problems(request.path, request.body) if self.record else []
            self._write({"asked": subject(request.body), "problems": found})
            if found:
                text = f"no vendor would take this: {'; '.join(found)}"
                await answer.whole(400, answer.wire.failure(400, text))
            for action in self._part(request):
                await self._act(action.strip(), answer)
            await answer.end()
            self._write({"answered": subject(request.body)})

    def _write(self, line: object) -> None:
        if self.record:
            with self.record.open("a") as file:
                file.write(f"{json.dumps(line)}\n")

    def _part(self, request: Seen) -> list[str]:
        script = SCENES.get(str(request.body.get("model", ""))) or self.script
        if written := _SCRIPT.search(subject(request.body)):
            script = SCENES.get(written["script"], written["script"])
        parts = script.split(" | ")
        actions = parts[min(steps_taken(request.body), len(parts) - 1)].split("; ")
        return [each for action in actions if (each := self._due(script, action))]

    def _due(self, script: str, action: str) -> str:
        if action.startswith("storm "):
            now = asyncio.get_running_loop().time()
            self._began_at = self._began_at or now
            return "status 429 retry-after 1" if now - self._began_at < float(action.split()[1]) else ""
        if not action.startswith("first "):
            return action
        _, count, action = action.split(" ", 2)
        self._done[f"{script} {action}"] += 1
        return action if self._done[f"{script} {action}"] <= int(count) else ""

    async def _act(self, action: str, answer: Answer) -> None:
        name, _, rest = action.partition(" ")
        await _ACTIONS[name](answer, rest)


def last_said(body: dict[str, Any]) -> str:
    """Return the last text of the person; what tools gave is not theirs, though one format sends it as if it were."""
    said = [_text(each["content"]) for each in body.get("messages", []) if each["role"] == "user"]
    return next((each for each in reversed(said) if each and not each.startswith(_GO_ON)), "")


def subject(body: dict[str, Any]) -> str:
    """Return the line with the last script, where there is one; several messages of a person may have become one."""
    said = last_said(body)
    scripts = [found[0] for found in _SCRIPT.finditer(said)]
    return scripts[-1] if scripts else said


def last_written(body: dict[str, Any]) -> str:
    """Return what the model had written of an answer that it is to go on with; nothing where it begins one."""
    *_, before, last = [{}, {}, *body.get("messages", [])]
    goes_on = last.get("role") == "user" and _text(last["content"]).startswith(_GO_ON)
    return _text(before["content"]) if goes_on and before["role"] == "assistant" else ""


def last_result(body: dict[str, Any]) -> str:
    """Return what the last tool call gave."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return str(last["content"])
    return next((str(each["content"]) for each in reversed(last["content"]) if each["type"] == "tool_result"), "")


def steps_taken(body: dict[str, Any]) -> int:
    """Return how often the model has made calls since the person last spoke."""
    steps = 0
    for each in reversed(body.get("messages", [])):
        if each["role"] == "user" and (said := _text(each["content"])) and not said.startswith(_GO_ON):
            break
        steps += each["role"] == "assistant" and _makes_calls(each)
    return steps


def _makes_calls(message: dict[str, Any]) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return bool(message.get("tool_calls")) or any(each["type"] == "tool_use" for each in blocks)


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(each["text"] for each in content if each["type"] == "text")


async def _say(answer: Answer, rest: str) -> None:
    await answer.send(answer.wire.text(rest))


async def _think(answer: Answer, rest: str) -> None:
    await answer.send(answer.wire.thought(rest))


async def _echo(answer: Answer, _: str) -> None:
    await answer.send(answer.wire.text(last_said(answer.request.body)))


async def _result(answer: Answer, _: str) -> None:
    await answer.send(answer.wire.text(last_result(answer.request.body)))


async def _stream(answer: Answer, rest: str) -> None:
    count, _, rate = rest.partition(" at ")
    await _pour(answer, _words_left(last_written(answer.request.body), int(count)), float(rate))


async def _count(answer: Answer, rest: str) -> None:
    count, _, rate = rest.partition(" at ")
    everything = counted(subject(answer.request.body).partition(" ")[0], int(count))
    written = last_written(answer.request.body)
    left = "" if written.startswith(everything) else everything.removeprefix(written)
    await _pour(answer, re.findall(r"\s*\S+", left), float(rate))


def counted(nonce: str, count: int) -> str:
    """Return the whole answer of `count`: the word by which a message is known, once, and numbered words."""
    return f"{nonce}:" + "".join(f" w{each:03d}" for each in range(count))


async def _pour(answer: Answer, words: Sequence[str], rate: float) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    for word in words:
        await answer.send(answer.wire.text(word))
        due += 1 / rate if rate else 0
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)


def _words_left(written: str, count: int) -> list[str]:
    """Return what is left to say.  A word was cut in two where its end could have been the beginning of a secret."""
    everything = "".join(f" word{each}" for each in range(count))
    begins = max(written.find(" word0"), 0 if everything.startswith(written) else -1)
    rest = everything.removeprefix(written[begins:]) if begins >= 0 else everything
    return re.findall(r"\s*\S+", rest)


async def _call(answer: Answer, rest: str) -> None:
    name, _, args = rest.partition(" ")
    await answer.send(answer.wire.call(name, args or "{}", whole=False))


async def _whole(answer: Answer, rest: str) -> None:
    name, _, args = rest.partition(" ")
    await answer.send(answer.wire.call(name, args or "{}", whole=True))


async def _usage(answer: Answer, rest: str) -> None:
    used, given, cached = map(int, rest.split())
    answer.usage = used, given, cached


async def _stop(answer: Answer, rest: str) -> None:
    answer.reason = rest


async def _status(answer: Answer, rest: str) -> None:
    status, _, header = rest.partition(" ")
    name, _, value = header.partition(" ")
    body = answer.wire.failure(int(status), f"status {status}")
    await answer.whole(int(status), body, headers=f"{name}: {value}\r\n" if name else "")


async def _says(answer: Answer, rest: str) -> None:
    status, _, text = rest.partition(" ")
    await answer.whole(int(status), answer.wire.failure(int(status), text))


async def _cut(answer: Answer, _: str) -> None:
    answer.writer.close()
    raise Over


async def _stall(answer: Answer, _: str) -> None:
    await answer.send(b"")
    await asyncio.Event().wait()


async def _hang(answer: Answer, _: str) -> None:
    await asyncio.Event().wait()


async def _garbage(answer: Answer, rest: str) -> None:
    for _ in range(int(rest)):
        await answer.send(b"data: {not json at all\n\n")


async def _error(answer: Answer, rest: str) -> None:
    await answer.send(answer.wire.error(rest))
    raise Over


async def _pings(answer: Answer, rest: str) -> None:
    count, _, pause = rest.partition(" every ")
    for _ in range(int(count)):
        await answer.send(answer.wire.ping())
        await asyncio.sleep(float(pause or 0))


async def _html(answer: Answer, _: str) -> None:
    await answer.whole(200, _HTML, "text/html; charset=utf-8")


async def _endless(answer: Answer, _: str) -> None:
    await answer.send(b'data: {"')
    while True:
        await answer.send(b"a" * 65_536)


async def _huge(answer: Answer, _: str) -> None:
    piece = answer.wire.text("a" * 65_536)
    while True:
        await answer.send(piece)


async def _plain(answer: Answer, rest: str) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": rest}, "finish_reason": "stop"}
    numbers = {"prompt_tokens": answer.usage[0], "completion_tokens": answer.usage[1]}
    await answer.whole(200, json.dumps({"object": "chat.completion", "choices": [choice], "usage": numbers}).encode())


_ACTIONS: dict[str, Callable[[Answer, str], Awaitable[None]]] = {
    "say": _say,
    "think": _think,
    "echo": _echo,
    "result": _result,
    "stream": _stream,
    "count": _count,
    "call": _call,
    "whole": _whole,
    "usage": _usage,
    "stop": _stop,
    "status": _status,
    "says": _says,
    "cut": _cut,
    "stall": _stall,
    "hang": _hang,
    "garbage": _garbage,
    "error": _error,
    "pings": _pings,
    "html": _html,
    "endless": _endless,
    "huge": _huge,
    "plain": _plain,
}


def _event(fields: object, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(fields)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


async def _run(port: int, script: str, record: Path | None) -> None:
    async with ModelServer(script=script, record=record).running(port) as server:
        print(server.port, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", default="echo")
    parser.add_argument("--record", type=Path)
    chosen = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(chosen.port, chosen.script, chosen.record))


if __name__ == "__main__":
    main()
