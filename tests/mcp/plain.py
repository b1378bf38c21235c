"""A tiny MCP server of an older protocol, with no package at all, that can misbehave: `python plain.py HOW [ARGUMENT]`."""

from __future__ import annotations

import json
import sys
import time

HOW, ARGUMENT = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
NAMES = ["first"]


def say(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tools() -> list[dict[str, object]]:
    names = [f"tool.{number}" for number in range(int(ARGUMENT))] if HOW == "many" else NAMES
    annotations = {"readOnlyHint": True}
    return [
        {"name": name, "description": "d" * 5_000, "inputSchema": {"type": "object"}, "annotations": annotations}
        for name in names
    ]


def call(request: dict[str, object]) -> None:
    if HOW == "hang":
        time.sleep(3600)
    if HOW == "flood":
        print("x" * int(ARGUMENT), flush=True)
    NAMES.append("second")
    say(method="notifications/tools/list_changed")
    say(id=request["id"], result={"content": [{"type": "text", "text": "hello"}]})


def answer(request: dict[str, object]) -> None:
    match request["method"]:
        case "initialize":
            capabilities = {"tools": {"listChanged": True}}
            server = {"name": "plain", "version": "1"}
            said = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": server}
            say(id=request["id"], result=said)
        case "tools/list":
            say(id=request["id"], result={"tools": tools()})
        case "tools/call":
            call(request)
        case method if "id" in request:
            say(id=request["id"], error={"code": -32601, "message": f"no method {method}"})
        case _:
            pass


if HOW == "mute":
    time.sleep(3600)
if HOW == "garbage":
    print("Welcome to the server!\n{]\n\x00\xff[1, 2]", flush=True)
for line in sys.stdin:
    answer(json.loads(line))
