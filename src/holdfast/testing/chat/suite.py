"""The suite as pytest sees it: one test for each case."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from holdfast.channels.chat.account import ChatKind
from holdfast.store.opening import open_store, store_path
from holdfast.testing.chat.cases import CASES, Case
from holdfast.testing.chat.far_side import FarSide, Impossible
from holdfast.testing.chat.world import World


class ChatConformance:
    """What every kind of chat account has to do, on any platform.

    A subclass whose name begins with `Test` names the kind, and opens its far side.  A case asks for what the capabilities
    of the kind promise, and else for what stands in its place.
    """

    # `Any` because each kind has settings of its own.
    kind: ClassVar[ChatKind[Any]]

    def far_side(self) -> AbstractAsyncContextManager[FarSide]:
        """Open a platform that knows nothing yet, and close it when the context ends."""
        raise NotImplementedError

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_chat(self, case: Case, tmp_path: Path) -> None:
        store_path(tmp_path).write_bytes(_empty_store())
        try:
            asyncio.run(self._play(case, tmp_path))
        except Impossible as error:
            pytest.skip(str(error))

    async def _play(self, case: Case, home: Path) -> None:
        async with self.far_side() as far:
            world = World(kind=self.kind, far=far, home=home)
            try:
                await case(world)
            except Impossible:
                raise
            except Exception as error:
                error.add_note(f"What people see:\n{await world.draw()}")
                raise


@functools.cache
def _empty_store() -> bytes:
    """Return a store that has its schema: a copy costs a third of what making one costs."""

    async def make(home: Path) -> None:
        await (await open_store("sqlite", home)).close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(make(Path(folder)))
        return store_path(Path(folder)).read_bytes()
