"""Offload: work on untrusted input runs in child processes that can be killed, so it cannot block the event loop."""
