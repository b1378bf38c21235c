"""What vendors demand of the messages in a request, stated anew for each wire format."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

Body = dict[str, Any]


def problems(path: str, body: Body) -> list[str]:
    """Return every reason for which a vendor would refuse a request, in words."""
    messages = body.get("messages", [])
    if not messages:
        return ["there are no messages"]
    return _anthropic(messages) if path.endswith("/messages") else _openai(messages)


def _openai(messages: list[Body]) -> list[str]:
    found: list[str] = []
    told = messages[1:] if messages[0]["role"] == "system" else messages
    if not told or told[0]["role"] != "user":
        found.append("the first message is not the person's")
    if messages[-1]["role"] not in ("user", "tool"):
        found.append("the last message is the model's own")
    open_calls: list[str] = []
    for before, each in zip([{"role": ""}, *told], told, strict=False):
        role = each["role"]
        if role == "tool":
            if each["tool_call_id"] not in open_calls:
                found.append(f"a result for {each['tool_call_id']}, which nobody called or which has one already")
            else:
                open_calls.remove(each["tool_call_id"])
            continue
        if open_calls:
            found.append(f"no result for {open_calls}")
            open_calls = []
        if role not in ("user", "assistant"):
            found.append(f"a message of {role} in the middle")
        if role == before["role"]:
            found.append(f"two messages of {role} in a row")
        if not each.get("content") and not each.get("tool_calls"):
            found.append(f"an empty message of {role}")
        open_calls = [call["id"] for call in each.get("tool_calls") or []]
        found += [wrong for call in each.get("tool_calls") or [] if (wrong := _wrong_args(call["function"]["arguments"]))]
    if open_calls:
        found.append(f"no result for {open_calls}")
    return found + _doubled([call["id"] for each in told for call in each.get("tool_calls") or []])


def _wrong_args(text: str) -> str:
    try:
        args = json.loads(text)
    except ValueError:
        return f"arguments that are no JSON: {text!r}"
    return "" if isinstance(args, dict) else f"arguments that are no object: {text!r}"


def _anthropic(messages: list[Body]) -> list[str]:
    found: list[str] = []
    open_calls: list[str] = []
    calls: list[str] = []
    for number, each in enumerate(messages):
        if each["role"] != ("assistant" if number % 2 else "user"):
            found.append(f"message {number} is of {each['role']}, and roles alternate")
        content = each["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if not blocks or any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            found.append(f"message {number} has an empty text")
        if sorted(results) != sorted(open_calls):
            found.append(f"message {number} has results for {results}, and calls were {open_calls}")
        if "tool_result" in kinds[len(results) :]:
            found.append(f"message {number} has something before its results")
        open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        calls += open_calls
        found += [
            f"input that is no object: {block['input']!r}"
            for block in blocks
            if block["type"] == "tool_use" and not isinstance(block["input"], dict)
        ]
    if messages[-1]["role"] != "user":
        found.append("the last message is the model's own")
    return found + _doubled(calls)


def _doubled(ids: list[str]) -> list[str]:
    return [f"{times} calls with the id {each}" for each, times in Counter(ids).items() if times > 1]
