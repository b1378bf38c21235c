"""Background commands, over a real engine and store."""

from __future__ import annotations

import pytest

from holdfast.core.processes import Process
from holdfast.errors import NotFound
from holdfast.ids import ProcessId, SessionId, TurnId
from holdfast.operations.conversation import SessionView
from holdfast.operations.sessions import Opening
from holdfast.store.store import Store
from tests.engine.world import Open, opened, running_engine
from tests.operations.asking import Asking, services_of


async def started(store: Store, session: SessionView, n: int) -> ProcessId:
    process_id = ProcessId(f"prc_{n}")
    await store.processes.add(
        Process(
            id=process_id,
            session_id=session.id,
            turn_id=TurnId("trn_1"),
            owner="local",
            home="/home",
            command=f"sleep {n}",
            workdir="/work",
            started_at=n,
        )
    )
    return process_id


async def test_processes_are_listed_read_and_ended(open_it: Open) -> None:
    async with opened(open_it) as store, running_engine(store, Asking()) as engine:
        services = services_of(store, engine)
        session = await services.sessions.open(Opening(key="chat"))
        ids = [await started(store, session, n) for n in range(1, 4)]
        first = await services.processes.list(limit=2)
        assert [each.id for each in first.items] == [ids[2], ids[1]]
        rest = await services.processes.list(limit=2, cursor=first.next_cursor)
        assert ([each.id for each in rest.items], rest.next_cursor) == ([ids[0]], None)
        assert (await services.processes.list(session_id=SessionId("ses_other"))).items == []
        assert (await services.gateway.status()).processes == 3
        output = await services.processes.output(ids[0], 4, 4)
        assert (output.text, output.begin, output.end) == ("two\n", 4, 8)
        killed = await services.processes.kill(ids[0])
        assert (killed.state, killed.exit_code) == ("exited", -9)
        assert [each.id for each in (await services.processes.list(state=killed.state)).items] == [ids[0]]
        other = services_of(store, engine, owner="somebody").processes
        for ask in (other.get(ids[1]), other.output(ids[1]), other.kill(ids[1]), services.processes.get(ProcessId("prc_0"))):
            with pytest.raises(NotFound):
                await ask
