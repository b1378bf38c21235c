"""Tools of MCP servers.  Only `wire` and what it imports need the `mcp` package, which is loaded for a configured server."""
