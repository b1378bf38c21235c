"""The settings that every account of a chat platform has.  Each platform extends them in its own `config.py`."""

from __future__ import annotations

from holdfast.config import ChatSettings

__all__ = ["ChatSettings"]
