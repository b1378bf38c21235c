"""The result of an MCP tool as text for the model: text as it is, structure as JSON, the rest described."""

from __future__ import annotations

import json
from typing import assert_never

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from holdfast.agent.toolbox import shortened

NOTHING = "(the tool returned nothing)"
# The limit of a server's text in a place that is meant for a word or a line.
_WORD_MAX_CHARS = 500


def words(result: CallToolResult) -> str:
    """Return a result as one text."""
    parts = [_described(block) for block in result.content]
    if result.structured_content is not None and not _is_said(result.structured_content, parts):
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return shortened("\n".join(parts)) or NOTHING


def _is_said(structure: object, parts: list[str]) -> bool:
    """Return whether the texts repeat the structure: servers do so for clients that only read text."""
    if structure == {"result": "\n".join(parts)}:
        return True
    try:
        said: list[object] = [json.loads(part) for part in parts]
    except (ValueError, RecursionError):
        return False
    return bool(said) and structure in ({"result": said}, {"result": said[0]}, said, said[0])


def _described(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind):
            return f"[an image, {_word(kind)}, {_size(data)} bytes: it cannot be shown here]"
        case AudioContent(data=data, mime_type=kind):
            return f"[a sound, {_word(kind)}, {_size(data)} bytes: it cannot be played here]"
        case ResourceLink(uri=uri, name=name, mime_type=kind):
            return f"[a resource of the server: {_word(name)}, {_word(kind or 'of unknown type')}, at {_word(uri)}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{_word(uri)}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data, mime_type=kind)):
            return f"[{_word(uri)}, {_word(kind or 'of unknown type')}, {_size(data)} bytes: no text]"
        case EmbeddedResource():
            return "[a resource of a kind that is not known here]"
        case _:
            assert_never(block)


def _size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4


def _word(text: str) -> str:
    return text[:_WORD_MAX_CHARS]
