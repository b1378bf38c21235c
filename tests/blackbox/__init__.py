"""The gateway as a process of its own, looked at from outside only."""
