"""Unique names, for models, of the tools of MCP servers."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence

NAME_MAX_CHARS = 64
SERVER_NAME_MAX_CHARS = 32
# No underscore at its ends and no two in a row, so that `__` always marks the end of the server's name.
SERVER_NAME = re.compile(r"[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS = 8


def tool_names(server: str, tools: Sequence[str]) -> Mapping[str, str]:
    """Return the model's name of each tool by the server's name, independent of the order of the tools."""
    plain = {tool: f"{server}__{_FOREIGN.sub('_', tool)}" for tool in tools}
    often = Counter(plain.values())
    return {tool: name if _is_own(server, tool, name, often) else _marked(name, tool) for tool, name in plain.items()}


def _is_own(server: str, tool: str, name: str, often: Mapping[str, int]) -> bool:
    if len(name) > NAME_MAX_CHARS:
        return False
    return often[name] == 1 or name == f"{server}__{tool}"


def _marked(name: str, tool: str) -> str:
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: NAME_MAX_CHARS - _DIGEST_CHARS - 1]}_{digest}"
