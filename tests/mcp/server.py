"""A real MCP server: `python -m tests.mcp.server stdio`, or with a port for streamable HTTP on loopback."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent, ToolAnnotations

PIXEL = b"not really a picture"
READ_ONLY = ToolAnnotations(read_only_hint=True)
server = MCPServer("test")


@server.tool(annotations=READ_ONLY)
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def slow(seconds: float, began: str) -> str:
    """Take a while, and leave a file to tell that it has begun."""
    Path(began).touch()
    await asyncio.sleep(seconds)
    return "done"


@server.tool()
def crash() -> str:
    """End the server at once."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool()
def fail() -> str:
    """Fail, as tools do."""
    raise ToolError("the printer is on fire")


@server.tool(annotations=READ_ONLY)
def picture() -> list[TextContent | ImageContent]:
    """Return a picture."""
    data = base64.b64encode(PIXEL).decode()
    return [TextContent(text="look:"), ImageContent(data=data, mime_type="image/png")]


@server.tool(annotations=READ_ONLY)
def structured() -> dict[str, int]:
    """Return structure, with the same as a text."""
    return {"answer": 42}


@server.tool(annotations=READ_ONLY)
def variable(name: str) -> str:
    """Tell a variable of the environment, and the process."""
    return f"{os.environ.get(name)} {os.getpid()}"


@server.tool()
async def learn(context: Context) -> str:
    """Get a new tool."""
    server.add_tool(lambda: "new", name="learnt", description="It was not there before.")
    await context.notify_tools_changed()
    return "learnt it"


if __name__ == "__main__":
    print("a word on stderr", file=sys.stderr)
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
