"""A real MCP server, made with the SDK: ``python mcp_server.py [PORT]`` serves stdio or streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import Image, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("test")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def weather(city: str, days: int = 1) -> str:
    """天气预报。The weather of a city."""
    return f"{city}：晴，{days} 天"


@server.tool()
def record(name: str) -> dict[str, object]:
    """A structured result."""
    return {"name": name, "marks": [1, 2]}


@server.tool(structured_output=False)
def picture() -> list:
    """Text and an image."""
    return ["here it is", Image(data=b"\x89PNG1234", format="png")]


@server.tool()
def environment(name: str) -> str:
    """A variable of the environment."""
    return os.environ.get(name, "unset")


@server.tool()
def fail(reason: str) -> str:
    """Raise."""
    raise ValueError(reason)


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def leave() -> str:
    """Exit at once."""
    sys.stderr.write("goodbye, \x1b[31mcruel\x1b[0m world\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def garbage() -> str:
    """Write what is no message on stdout, between messages."""
    os.write(1, b'this is no JSON\n{"jsonrpc": "2.0", "id": 99999, "result": []}\n\xff\xfe\n')
    return "and go on"


@server.tool(structured_output=False)
def process() -> int:
    """The process id."""
    return os.getpid()


if __name__ == "__main__":
    sys.stderr.write("server starts\n")
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
