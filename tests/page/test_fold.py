"""The page's fold of the journal agrees with the gateway's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.core.events import PENDING, EntryKind, TurnInterrupted
from holdfast.core.journal import Entry, EntryRecord, join
from holdfast.core.transcript import fold
from holdfast.core.turns import Cause
from tests import scratch
from tests.openai.cancels import cancelled_in_mid_stream
from tests.unit.test_transcript import delayed, entry, numbered

BUILD = Path(__file__).parents[2] / "page" / "build.py"
JOURNALS = 150


def journals() -> list[list[Entry]]:
    """Return journals as a store could hold them, many of them with entries that arrived late."""
    found: list[list[Entry]] = []
    slow = [HealthCheck.too_slow]

    @settings(max_examples=JOURNALS, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=slow)
    @given(delayed(), st.sampled_from(Cause), st.sampled_from(["", PENDING]))
    def collect(case: tuple[list[Entry], list[Entry]], cause: Cause, recovery: str) -> None:
        found.append([_cut_off_by(each, cause, recovery) for each in case[1]])

    collect()
    return found


def _cut_off_by(found: Entry, cause: Cause, recovery: str) -> Entry:
    if not isinstance(found.event, TurnInterrupted):
        return found
    return replace(found, event=TurnInterrupted(cause=cause, continues=recovery == PENDING, recovery=recovery))


def everything() -> list[Entry]:
    """Return a journal with an entry of every kind, and turns that show nothing."""
    prior = [{"speaker": "system", "text": "be brief"}, {"speaker": "nobody", "text": "x"}]
    entries = [
        entry(EntryKind.TURN_ACCEPTED, "host", 0, text="go", prior=prior, images=[{"media_type": "image/png", "bytes": 3}]),
        entry(EntryKind.TURN_STARTED, "host", 1, 1),
        entry(EntryKind.REASONING, "host", 1, 2, text="hm"),
        entry(EntryKind.TEXT, "host", 1, 3, text="so "),
        entry(EntryKind.TEXT, "host", 1, 4, text="far"),
        entry(EntryKind.TURN_ACCEPTED, "guest", 0, text="and this"),
        entry(EntryKind.TURN_COMPLETED, "guest", 0, joined="host"),
        entry(EntryKind.MESSAGE_JOINED, "host", 1, 5, text="and this", turn_id="guest"),
        entry(EntryKind.TOOL_FINISHED, "host", 1, 6, call_id="c", name="run", outcome="error", result="no", args={"a": 1}),
        entry(EntryKind.TOOL_STARTED, "host", 1, 7, call_id="d", name="run", args={"a": 2}),
        entry(EntryKind.TOOL_FINISHED, "host", 1, None, call_id="d", name="run", outcome="unknown"),
        entry(EntryKind.NOTE, "host", 1, None, text="The gateway is restarting.", banner="restart"),
        entry(EntryKind.TURN_INTERRUPTED, "host", 1, cause="crash", continues=True, recovery=PENDING),
        entry(EntryKind.TURN_RECOVERED, "host", 1, found=0),
        entry(EntryKind.TURN_STARTED, "host", 2, 1),
        entry(EntryKind.CONTEXT_COMPACTED, "host", 2, 2, text="all that was", through="host", after=1),
        entry(EntryKind.USAGE, "host", 2, 3, model="m", input_tokens=1, output_tokens=2, cached_tokens=0, cost_micros=0),
        entry(
            EntryKind.APPROVAL_ASKED, "host", 2, 4, question_id="q", text="may I?", about="approval", choices=[], detail={}
        ),
        entry(EntryKind.TEXT, "host", 2, 5, text="while it waits"),
        entry(EntryKind.APPROVAL_ANSWERED, "host", 2, question_id="q", text="deny"),
        entry(EntryKind.TEXT, "host", 2, 6, text="after that"),
        entry(EntryKind.NOTE, "host", 2, 7, text="Waiting for the model: away.", waiting="model"),
        entry(EntryKind.TURN_DEFERRED, "host", 2, 8, error="away", retry_at=9_000),
        entry(EntryKind.TURN_FAILED, "host", 3, error="no such model"),
        entry(EntryKind.TURN_ACCEPTED, "undone", 0, text="never mind"),
        entry(EntryKind.TURN_UNDONE, "undone", 0),
        entry(EntryKind.TURN_ACCEPTED, "left", 0, text="later"),
        entry(EntryKind.TURN_REVISED, "left", 0, text="sooner"),
        entry(EntryKind.TURN_CANCELLED, "left", 0, cause="session_ended"),
        entry(EntryKind.TURN_ACCEPTED, "lost", 0, text="once more"),
        entry(EntryKind.TURN_STARTED, "lost", 1, 1),
        entry(EntryKind.TURN_INTERRUPTED, "lost", 1, cause="crash", continues=True, recovery=PENDING),
        entry(EntryKind.TURN_CANCELLED, "lost", 1, cause="user"),
        entry(EntryKind.TURN_RECOVERED, "lost", 1, found=0),
        entry(EntryKind.USAGE, "lost", 1, 2, model="m", input_tokens=1, output_tokens=2, cached_tokens=0, cost_micros=0),
    ]
    assert {each.kind for each in entries} == set(EntryKind)
    return numbered(entries)


async def streamed() -> list[list[Entry]]:
    """Return journals as a gateway streams them, each with a turn that was cancelled while its model streamed."""
    with scratch.home() as home:
        async with cancelled_in_mid_stream(home, 1) as (_, _, conversations):
            return [[each.entry for each in msgspec.convert(each.events, list[EntryRecord])] for each in conversations]


def _case(entries: Sequence[Entry], *, live: bool = False) -> dict[str, object]:
    timed = [replace(each, at=1_000 * each.seq) for each in entries]
    return {"entries": [EntryRecord.of(each) for each in timed], "joined": join(timed), "items": fold(timed), "live": live}


@pytest.mark.timeout(120)
def test_the_page_folds_a_journal_as_the_gateway_does(tmp_path: Path) -> None:
    """J3 J9: a turn that is cancelled while it streams shows nothing more."""
    corpus = tmp_path / "corpus.json"
    live = [_case(each, live=True) for each in asyncio.run(streamed())]
    cases = [*(_case(each) for each in chain(journals(), [everything()])), *live]
    corpus.write_bytes(msgspec.json.encode(cases))
    environment = {**os.environ, "VITE_CORPUS": str(corpus), "NO_COLOR": "1"}
    command = [sys.executable, BUILD, "test", "tests/journal/agreement.test.ts", "--reporter=verbose"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(cases)} journals" in done.stdout
