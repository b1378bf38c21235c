"""The model of a session, as the API shows and changes it."""

from __future__ import annotations

import pytest

from holdfast.errors import Rejected
from holdfast.operations.sessions import Change, Fork, Opening
from tests.engine.test_shared_commands import LARGE, SMALL, choices
from tests.engine.world import Open, opened, running_engine
from tests.operations.asking import Asking, services_of


async def test_the_model_of_a_session_is_changed_and_shown_and_taken_along(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking(), models=choices()) as engine:
        sessions = services_of(store, engine).sessions
        session = await sessions.open(Opening(key="chat"))
        assert (session.model, session.chosen_model) == (None, None)
        changed = await sessions.change(session.id, Change(model="large-1"))
        assert (changed.model, changed.chosen_model) == (LARGE, LARGE)
        with pytest.raises(Rejected, match=f"did you mean {LARGE}"):
            await sessions.change(session.id, Change(model="lage-1", title="not kept either"))
        assert await sessions.change(session.id, Change(pinned=True)) == await sessions.get(session.id)
        fork = await sessions.fork(session.id, Fork())
        assert fork.chosen_model == LARGE
        for none in ("", SMALL):
            await sessions.change(session.id, Change(model=LARGE))
            assert (await sessions.change(session.id, Change(model=none))).chosen_model is None
        assert (await sessions.get(session.id)).title is None
