"""An always-on AI-agent gateway that never loses a turn."""

__version__ = "0.1.0"
