"""The conformance suite of chat platforms, for our own and for those of other packages.

A package writes a `FarSide`, which plays its platform, and a subclass of `ChatConformance`.  See docs/channels.md.
"""

from __future__ import annotations

import pytest

# The cases are compared with `assert`, and are no test modules that pytest would find by itself.
pytest.register_assert_rewrite("holdfast.testing.chat.cases", "holdfast.testing.chat.world")

from holdfast.testing.chat.far_side import Failure, FarSide, Impossible, Shown, Where, Who  # noqa: E402 - See above.
from holdfast.testing.chat.suite import ChatConformance  # noqa: E402 - See above.

__all__ = ["ChatConformance", "Failure", "FarSide", "Impossible", "Shown", "Where", "Who"]
