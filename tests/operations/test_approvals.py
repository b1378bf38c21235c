"""What turns wait for and what may be done without asking, over a real engine and store."""

from __future__ import annotations

import pytest

from holdfast.app.services import offline_services
from holdfast.core.questions import APPROVAL_CHOICES, About
from holdfast.errors import NotFound, Rejected
from holdfast.operations.approvals import find
from holdfast.operations.sessions import Message, Opening
from holdfast.operations.turns import Answer
from tests.engine.world import Open, opened, running_engine
from tests.operations.asking import Asking, said, services_of, waiting


async def test_an_approval_is_listed_with_what_it_is_about_and_answered_by_its_short_id(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        asked = await waiting(services, "rm -rf build")
        assert (asked.about, asked.text, asked.detail) == (
            About.APPROVAL,
            "May I run rm -rf build?",
            {"command": "rm -rf build"},
        )
        assert asked.choices == tuple(APPROVAL_CHOICES)
        assert len(asked.id) < 16
        other = await waiting(services, "rm -rf dist", key="other")
        assert [each.id for each in (await services.approvals.list()).items] == [asked.id, other.id]
        assert [each.id for each in (await services.approvals.list(session_id=other.session_id)).items] == [other.id]
        for name in (asked.id, asked.id[:-1], asked.turn_id):
            assert await find(services.approvals, name) == asked
        for nobody in ("", "trn_0", "zzzz"):
            with pytest.raises(NotFound):
                await find(services.approvals, nobody)
        status = await services.gateway.status()
        assert (status.questions, status.agent.model) == (2, "mine:small")
        await services.turns.answer(asked.turn_id, Answer(text="once", question_id=asked.question_id))
        assert await said(services, asked.turn_id) == "ok: ran rm -rf build"
        await services.turns.answer(other.turn_id, Answer(text="deny", question_id=other.question_id))
        assert (await said(services, other.turn_id)).startswith("error: Not run: denied")
        assert (await services.approvals.list()).items == []


async def test_open_questions_come_in_pages(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        ids = [(await waiting(services, f"rm {n}", key=f"chat {n}")).id for n in range(3)]
        first = await services.approvals.list(limit=2)
        assert [each.id for each in first.items] == ids[:2]
        rest = await services.approvals.list(limit=2, cursor=first.next_cursor)
        assert ([each.id for each in rest.items], rest.next_cursor) == (ids[2:], None)
        with pytest.raises(Rejected, match="no cursor"):
            await services.approvals.list(cursor="never")


async def test_what_is_granted_is_listed_and_can_be_taken_back(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        asked = await waiting(services, "make clean")
        await services.turns.answer(asked.turn_id, Answer(text="always", question_id=asked.question_id))
        await said(services, asked.turn_id)
        (grant,) = (await services.approvals.grants()).items
        assert (grant.text, grant.session_id) == ("May I run make clean?", None)
        # Exactly this is not asked again, wherever it is wanted.
        session = await services.sessions.open(Opening(key="elsewhere"))
        free = await services.sessions.send(session.id, Message(text="make clean"))
        assert await said(services, free.turn_id) == "ok: ran make clean"
        with pytest.raises(NotFound):
            await services_of(store, engine, owner="somebody").approvals.revoke(grant.id)
        with pytest.raises(NotFound):
            await services.approvals.revoke("")
        assert (await services.approvals.revoke(grant.id)).id == grant.id
        assert (await services.approvals.grants()).items == []
        again = await waiting(services, "make clean", key="once more")
        await services.turns.cancel(again.turn_id)


async def test_questions_of_others_are_not_there(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        asked = await waiting(services, "ask which way")
        assert (asked.about, asked.choices) == (About.ANSWER, ("north", "south"))
        assert (await services_of(store, engine, owner="somebody").approvals.list()).items == []
        # What can be read while no gateway runs is the same.
        assert (await offline_services(store).approvals.list()).items == [asked]
        await services.turns.answer(asked.turn_id, Answer(text="north"))
        assert await said(services, asked.turn_id) == "north"
