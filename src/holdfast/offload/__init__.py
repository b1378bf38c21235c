"""Offload: work on foreign input runs in child processes that can be killed, so that it cannot hold the event loop."""
