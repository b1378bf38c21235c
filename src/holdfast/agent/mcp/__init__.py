"""Tools of MCP servers.  Only `client` and its imports need the `mcp` package, which is loaded if a server is configured."""
