"""Masks secrets in log records before a handler writes them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator

from holdfast.core.redaction import Redaction

_format_exception = logging.Formatter().formatException


class RedactingFilter(logging.Filter):
    """Masks secrets in the message of a record, and in the exception that it carries."""

    def __init__(self, redaction: Redaction) -> None:
        super().__init__()
        self._redaction = redaction

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redaction.text(record.getMessage()), ()
        if record.exc_info:
            # As text, because a handler that formats it by itself would show it whole.
            record.exc_text, record.exc_info = _format_exception(record.exc_info), None
        if record.exc_text:
            record.exc_text = self._redaction.text(record.exc_text)
        return True


@contextlib.contextmanager
def redacted_logs(redaction: Redaction) -> Generator[None]:
    """Mask secrets in everything that the root's handlers write, for as long as the context lasts."""
    redacting = RedactingFilter(redaction)
    root = logging.getLogger()
    # With no handler at all, Python writes by its last resort.
    handlers = [*root.handlers, *([logging.lastResort] if logging.lastResort else [])]
    for handler in handlers:
        handler.addFilter(redacting)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(redacting)
