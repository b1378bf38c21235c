"""Memory in an OpenViking server."""
