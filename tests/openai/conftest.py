"""A home for each test, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.house import scratch_home


@pytest.fixture
def home() -> Iterator[Path]:
    with scratch_home() as folder:
        yield folder
