"""Removes each guard in turn and runs the tests that should notice: a guard nobody misses is not guarded.

    python tests/mutants.py              all of them
    python tests/mutants.py fence index  those whose name contains one of the words

Each mutant is a copy of `src/` with one text replaced; the tests run against the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard: where it stands, what replaces it, and the tests that must turn red."""

    name: str
    file: str
    guard: str
    without: str
    tests: tuple[str, ...]


CONFORMANCE = "tests/conformance"
MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "fence on append",
        "store/journal.py",
        "WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth",
        "WHERE id = :id AND CAST(:fence AS BIGINT) >= 0 AND state = 'running' AND nth = :nth",
        ("tests/conformance/test_journal.py", "tests/conformance/test_nodes.py"),
    ),
    Mutant(
        "number of the entry on append",
        "store/journal.py",
        "WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth",
        "WHERE id = :id AND fence = :fence AND state = 'running' AND CAST(:nth AS BIGINT) >= 0",
        ("tests/conformance/test_journal.py",),
    ),
    Mutant(
        "fence on finish",
        "store/settlement.py",
        "WHERE id = :id AND fence = :fence AND state = 'running' AND nth = :nth",
        "WHERE id = :id AND CAST(:fence AS BIGINT) >= 0 AND state = 'running' AND nth = :nth",
        ("tests/conformance/test_settlement.py", "tests/conformance/test_nodes.py"),
    ),
    Mutant(
        "fence on start",
        "store/turns.py",
        "WHERE id = :id AND fence = :fence AND state = 'queued' AND node_id IS NOT NULL",
        "WHERE id = :id AND CAST(:fence AS BIGINT) >= 0 AND state = 'queued' AND node_id IS NOT NULL",
        ("tests/conformance/test_turns.py", "tests/conformance/test_nodes.py"),
    ),
    Mutant(
        "one live turn per session",
        "store/schema/0001_spine.sql",
        "CREATE UNIQUE INDEX turns_one_live_per_session",
        "CREATE INDEX turns_one_live_per_session",
        ("tests/conformance/test_schema.py",),
    ),
    Mutant(
        "an effectful tool starts once",
        "store/schema/0001_spine.sql",
        "CHECK (effect <> 'effectful' OR starts <= 1)",
        "CHECK (starts >= 0)",
        ("tests/conformance/test_schema.py", "tests/conformance/test_journal.py"),
    ),
    Mutant(
        "one labelled resend",
        "store/schema/0001_spine.sql",
        "CHECK (repeats IN (0, 1))",
        "CHECK (repeats >= 0)",
        ("tests/conformance/test_schema.py", "tests/conformance/test_deliveries.py"),
    ),
    Mutant(
        "an effectful call that was cut off is unknown",
        "core/effects.py",
        "            return Event.LOSE",
        "            return Event.REPEAT",
        ("tests/unit", "tests/conformance/test_settlement.py"),
    ),
    Mutant(
        "full sync before every acknowledgement",
        "store/sqlite.py",
        "PRAGMA synchronous = FULL",
        "PRAGMA synchronous = NORMAL",
        ("tests/crash/test_power_loss.py",),
    ),
    Mutant(
        "a failed fsync ends the store",
        "store/sqlite.py",
        "        except Exception as error:\n            self._break(error)",
        "        except Exception as error:\n            self._roll_back()\n"
        "            for job in batch:\n                job.outcome = Unavailable(str(error))",
        ("tests/crash/test_faults.py",),
    ),
    Mutant(
        "errors of a checkpoint end the store",
        "store/sqlite.py",
        "        except apsw.Error as error:\n            self._break(error)",
        "        except apsw.Error:\n            return",
        ("tests/crash/test_faults.py",),
    ),
    Mutant(
        "files that were moved under us",
        "store/sqlite.py",
        '        execute("COMMIT")\n        self._refuse_moved_files()',
        '        execute("COMMIT")',
        ("tests/crash/test_faults.py",),
    ),
    Mutant(
        "room kept for a full disk",
        "store/home.py",
        "        self._path.unlink(missing_ok=True)\n        self._held = False",
        "        self._held = False",
        ("tests/crash/test_faults.py",),
    ),
    Mutant(
        "one bad transaction does not touch its neighbours",
        "store/sqlite.py",
        '                execute("ROLLBACK TO job")',
        "                pass",
        (CONFORMANCE,),
    ),
    Mutant(
        "another body under the same key",
        "store/dedupe.py",
        "    if first_hash != body_hash:",
        "    if first_hash is None:",
        ("tests/conformance/test_turns.py",),
    ),
    Mutant(
        "acceptance order",
        "store/turns.py",
        "AND o.ordinal < t.ordinal\n                              AND o.state IN ('queued', 'running', 'waiting'))",
        "AND o.ordinal < t.ordinal\n                              AND o.state IN ('running'))",
        ("tests/conformance/test_turns.py",),
    ),
    Mutant(
        "a suspended session takes no more messages",
        "store/intake.py",
        "WHERE owner = :owner AND key = :key AND state = 'open'\n RETURNING id, seq, turns",
        "WHERE owner = :owner AND key = :key AND state <> 'ended'\n RETURNING id, seq, turns",
        ("tests/conformance/test_settlement.py", "tests/conformance/test_sessions.py"),
    ),
    Mutant(
        "cancelling moves the fence",
        "store/cancellation.py",
        "SET state = 'cancelled', cause = :cause, fence = fence + 1, node_id = NULL",
        "SET state = 'cancelled', cause = :cause, node_id = NULL",
        ("tests/conformance/test_settlement.py", "tests/conformance/test_nodes.py"),
    ),
    Mutant(
        "a one-shot session ends with its turn",
        "store/closing.py",
        "_ENDS = \"one_shot = 1 AND state = 'open'\"",
        "_ENDS = \"one_shot = 2 AND state = 'open'\"",
        ("tests/conformance/test_settlement.py",),
    ),
    Mutant(
        "three strikes",
        "core/sessions.py",
        "STRIKES_MAX = 3",
        "STRIKES_MAX = 30",
        ("tests/unit", "tests/conformance/test_settlement.py"),
    ),
    Mutant(
        "a completed turn clears the strikes",
        "store/closing.py",
        "strikes = CASE WHEN CAST(:completed AS BIGINT) = 1 THEN 0 ELSE strikes END",
        "strikes = CASE WHEN CAST(:completed AS BIGINT) = 2 THEN 0 ELSE strikes END",
        ("tests/conformance/test_settlement.py",),
    ),
    Mutant(
        "parts leave in order",
        "store/deliveries.py",
        "e.part < d.part",
        "e.part < 0",
        ("tests/conformance/test_deliveries.py",),
    ),
    Mutant(
        "fence on deliveries",
        "store/deliveries.py",
        "WHERE id = :id AND fence = :fence AND state = :before",
        "WHERE id = :id AND CAST(:fence AS BIGINT) >= 0 AND state = :before",
        ("tests/conformance/test_deliveries.py", "tests/conformance/test_nodes.py"),
    ),
    Mutant(
        "the oldest debt first",
        "core/memory.py",
        "oldest = min(dirty,",
        "oldest = max(dirty,",
        ("tests/unit", "tests/conformance/test_segments.py"),
    ),
    Mutant(
        "only its owner commits a segment",
        "core/memory.py",
        "oldest.owner == owner and",
        "oldest.owner and",
        ("tests/unit", "tests/conformance/test_segments.py"),
    ),
    Mutant(
        "a beat in the last moment saves a node",
        "store/nodes.py",
        "WHERE id = :id AND beat = :beat AND state = 'alive'",
        "WHERE id = :id AND CAST(:beat AS BIGINT) >= 0 AND state = 'alive'",
        ("tests/conformance/test_nodes.py",),
    ),
    Mutant(
        "a slot fires once",
        "store/jobs.py",
        "AND last_instant < :instant",
        "AND last_instant <> :instant",
        ("tests/conformance/test_jobs.py",),
    ),
    Mutant(
        "late entries land once",
        "store/journal.py",
        '_INSERT_LATE = _INSERT + " ON CONFLICT (turn_id, attempt, nth) DO NOTHING RETURNING seq"',
        '_INSERT_LATE = _INSERT + " RETURNING seq"',
        ("tests/conformance/test_journal.py",),
    ),
    Mutant(
        "whose look counts is decided once",
        "store/recoveries.py",
        "AND attempt = :attempt AND tries = :tries",
        "AND attempt = :attempt AND CAST(:tries AS BIGINT) >= 0",
        ("tests/conformance/test_recoveries.py",),
    ),
    Mutant(
        "a search ends with an entry",
        "store/recoveries.py",
        "    yield from journal.number(turn, None, [draft])\n",
        "",
        ("tests/conformance/test_recoveries.py",),
    ),
    Mutant(
        "nothing is said to be recovered while it is pending",
        "core/transcript.py",
        'entry.attempt not in resolved and entry.data.get("recovery") == PENDING',
        'entry.attempt in resolved and entry.data.get("recovery") == PENDING',
        ("tests/unit/test_lost_output.py",),
    ),
    Mutant(
        "no intent is spooled",
        "engine/spool.py",
        "SPOOLED = frozenset({Kind.TEXT, Kind.REASONING, Kind.TOOL_FINISHED, Kind.USAGE})",
        "SPOOLED = frozenset({Kind.TEXT, Kind.REASONING, Kind.TOOL_STARTED, Kind.TOOL_FINISHED, Kind.USAGE})",
        ("tests/engine/test_spool.py",),
    ),
    Mutant(
        "what cannot be written is on disk",
        "engine/backlog.py",
        "                    await self._file.append(lines)\n",
        "                    self._file.size = 1\n",
        ("tests/engine/test_spool.py",),
    ),
    Mutant(
        "what is left is on disk",
        "engine/backlog.py",
        "self._abandon(self._file, self._lines(self._batches))",
        "self._abandon(self._file, [])",
        ("tests/engine/test_spool.py",),
    ),
    Mutant(
        "a living node hands in for itself",
        "engine/salvage.py",
        "        if node_id in living and not is_mine:\n            return False\n",
        "",
        ("tests/engine/test_spool.py",),
    ),
    Mutant(
        "no search for oneself is ended",
        "engine/salvage.py",
        "unfinished = {self._node_id}",
        "unfinished = set()",
        ("tests/crash/test_lost_words.py",),
    ),
    Mutant(
        "a home is awaited from elsewhere only",
        "store/nodes.py",
        "its_home if its_home and its_home != home else",
        "its_home if its_home else",
        ("tests/conformance/test_recoveries.py",),
    ),
    Mutant(
        "a farewell is an outage",
        "store/postgres.py",
        "    asyncpg.InternalClientError,\n",
        "",
        ("tests/crash/test_postgres_down.py",),
    ),
    Mutant(
        "a newer schema is refused",
        "store/migrations.py",
        "    if current > newest:",
        "    if current < 0:",
        ("tests/conformance/test_schema.py",),
    ),
    Mutant(
        "journal before show",
        "engine/backlog.py",
        "        batch = self._batches[0]\n",
        "        batch = self._batches[0]\n        from holdfast.store.journal import numbered\n"
        "        first = self.turn.nth + 1\n"
        "        self._feed.publish(numbered(self.turn, self.turn.nth + len(batch.drafts), first, batch.drafts))\n",
        ("tests/engine",),
    ),
    Mutant(
        "a write is not cut in half when the agent is done",
        "engine/worker.py",
        "            async with stage.at_rest():\n                if not flushing.cancel():",
        "            if True:\n                if not flushing.cancel():",
        ("tests/engine", "tests/crash/test_failpoints.py"),
    ),
    Mutant(
        "secrets are masked",
        "core/redaction.py",
        "            shown += (text[end:start], MASK)",
        "            shown += (text[end:start], text[start:stop])",
        ("tests/unit", "tests/engine"),
    ),
    Mutant(
        "a live lease does not lapse",
        "core/leases.py",
        "now_ms - sighting.since_ms >= lease_ms",
        "now_ms - sighting.since_ms >= 0",
        ("tests/unit",),
    ),
    Mutant(
        "a sweep waits for nobody's locks",
        "store/nodes.py",
        '_CUT.format(skip_locked=dialect.skip_locked and "FOR UPDATE OF t SKIP LOCKED")',
        '_CUT.format(skip_locked="")',
        ("tests/conformance/test_concurrency.py",),
    ),
    Mutant(
        "limit on a whole transaction",
        "store/postgres.py",
        ".major >= TRANSACTION_LIMIT_SINCE",
        ".major < 0",
        ("tests/crash/test_zombies.py::test_a_node_frozen_inside_a_statement_does_not_keep_its_locks",),
    ),
    Mutant(
        "only the holder of a turn takes messages in",
        "store/turns.py",
        "    if stands is None or (stands.fence, stands.state) != (turn.fence, state) or nth not in (None, stands.nth):",
        "    if stands is None or stands.state != state or nth not in (None, stands.nth):",
        ("tests/conformance/test_busy.py", "tests/conformance/test_turns.py", "tests/conformance/test_settlement.py"),
    ),
    Mutant(
        "nothing steers past a message that wants a turn of its own",
        "store/turns.py",
        "AND o.ordinal < t.ordinal AND o.state = 'queued' AND NOT ",
        "AND o.ordinal < t.ordinal AND o.state = 'running' AND NOT ",
        ("tests/conformance/test_busy.py",),
    ),
    Mutant(
        "nothing joins a turn whose answer goes elsewhere",
        "store/turns.py",
        "AND {0}.mode = :mode AND {0}.delivers_later = :delivers_later",
        "AND CAST(:mode AS TEXT) <> '' AND CAST(:delivers_later AS BIGINT) >= 0",
        ("tests/conformance/test_busy.py",),
    ),
    Mutant(
        "late words are not said twice",
        "store/journal.py",
        "CAST(:kind AS TEXT) IN ('tool.finished', 'usage')",
        "CAST(:kind AS TEXT) <> ''",
        ("tests/engine/test_drain.py",),
    ),
    Mutant(
        "a command is done once",
        "store/dedupe.py",
        "            raise Repeated(",
        "            str(",
        ("tests/engine/test_commands.py",),
    ),
    Mutant(
        "a fork knows what was done",
        "store/forks.py",
        "        yield RunMany(_COPY_CALLS",
        "        yield RunMany(_COPY_CALLS.replace(':turn_id', \"'' || :turn_id || 'x'\")",
        ("tests/conformance/test_forks.py",),
    ),
    Mutant(
        "a message that joined stands once",
        "core/transcript.py",
        'or (entry.kind is Kind.TURN_COMPLETED and "joined" in entry.data)',
        "",
        ("tests/conformance/test_busy.py",),
    ),
    Mutant(
        "an interrupting message cancels what is in flight",
        "store/intake.py",
        "    if message.busy is Busy.INTERRUPT:\n        superseded",
        "    if message.busy is Busy.REJECT:\n        superseded",
        ("tests/conformance/test_busy.py",),
    ),
    Mutant(
        "a session that is held never gives way",
        "core/resets.py",
        "        if held:\n            return None\n",
        "",
        ("tests/unit/test_resets.py",),
    ),
    Mutant(
        "whoever is resume pending is held",
        "store/intake.py",
        "           s.strikes > 0 OR EXISTS",
        "           s.strikes > 9 OR EXISTS",
        ("tests/conformance/test_resets.py",),
    ),
    Mutant(
        "each chat is told once",
        "store/settlement.py",
        "told = [turn for turn in running if (turn.id, turn.attempt) not in told_before]",
        "told = running",
        ("tests/conformance/test_banners.py",),
    ),
    Mutant(
        "a banner takes no answer with it",
        "store/deliveries.py",
        "AND state IN ('pending', 'retry') AND CAST(:part AS BIGINT) > 0",
        "AND state IN ('pending', 'retry') AND CAST(:part AS BIGINT) > -9",
        ("tests/conformance/test_banners.py",),
    ),
    Mutant(
        "what was promised before a crash is kept",
        "core/turns.py",
        "and cause is Cause.CRASH and strikes <= 1",
        "and cause is Cause.CRASH",
        ("tests/unit/test_turns.py",),
    ),
    Mutant(
        "one open question per turn",
        "store/schema/0004_agent.sql",
        "CREATE UNIQUE INDEX questions_one_open_per_turn ON questions (turn_id)",
        "CREATE INDEX questions_one_open_per_turn ON questions (turn_id)",
        ("tests/conformance/test_schema.py",),
    ),
    Mutant(
        "only the open question takes an answer",
        "store/questions.py",
        "if question.id != question_id:",
        "if not question.id:",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "no answer after a question has expired",
        "store/questions.py",
        "draft.at >= expires_at",
        "draft.at > expires_at + 3_600_000",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "a cancelled turn leaves no question open",
        "store/cancellation.py",
        "if turn.state is State.WAITING:",
        "if turn.state is State.CANCELLED:",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "a grant only for longer than once",
        "store/questions.py",
        "if decision not in (Decision.SESSION, Decision.ALWAYS):",
        "if decision is Decision.DENY:",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "a grant only for an approval of one exact action",
        "store/questions.py",
        "if question.about is not About.APPROVAL or not question.fingerprint:",
        "if not question.fingerprint:",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "a grant only in its session",
        "store/questions.py",
        "asked.session_id if decision is Decision.SESSION else None",
        "None",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "calls are parked with their turn",
        "store/turns.py",
        "    for before, after in calls:\n        yield from journal.save_call(before, after)\n",
        "",
        ("tests/conformance/test_questions.py",),
    ),
    Mutant(
        "what works for a turn is cancelled with it",
        "store/cancellation.py",
        "        cancelled += yield from _cancel_unless_at_rest(dialect, child_id, cause, now_ms)\n",
        "        cancelled += []\n",
        ("tests/conformance/test_children.py",),
    ),
    Mutant(
        "nobody works for a cancelled turn",
        "store/intake.py",
        "if state == State.CANCELLED:",
        "if state == State.RUNNING and not session_id:",
        ("tests/conformance/test_children.py",),
    ),
    Mutant(
        "a parent is held while its child is accepted",
        "store/intake.py",
        '"UPDATE turns SET nth = nth WHERE id = :id RETURNING session_id, state"',
        '"SELECT session_id, state FROM turns WHERE id = :id"',
        ("tests/conformance/test_children.py",),
    ),
    Mutant(
        "spending of late entries counts once",
        "store/journal.py",
        "        if inserted:\n            yield from spending.record([entry])\n            new += 1\n",
        "        yield from spending.record([replace(entry, nth=entry.nth + numbered[0][0] * 1_000)])\n"
        "        if inserted:\n            new += 1\n",
        ("tests/conformance/test_spending.py",),
    ),
    Mutant(
        "spending is not copied by a fork",
        "store/forks.py",
        "yield from journal.copy(copied)",
        "yield from journal.insert(copied)",
        ("tests/conformance/test_spending.py",),
    ),
    Mutant(
        "pictures are part of what a key stands for",
        "core/intake.py",
        "if not self.images:",
        "if self.images is not None:",
        ("tests/conformance/test_images.py",),
    ),
    Mutant(
        "an aside leaves once",
        "store/deliveries.py",
        "    if first:\n        return first[0]\n",
        "    if first:\n        sent = replace(sent, id=new_delivery_id(sent.created_at))\n",
        ("tests/conformance/test_asides.py",),
    ),
    Mutant(
        "an aside of a running turn only",
        "store/deliveries.py",
        "    if not running:\n",
        "    if not sent.turn_id:\n",
        ("tests/conformance/test_asides.py",),
    ),
    Mutant(
        "a running process holds its session",
        "store/intake.py",
        "p.session_id = s.id AND p.state = 'running'",
        "p.session_id = s.id AND p.state = 'lost'",
        ("tests/conformance/test_resets.py",),
    ),
    Mutant(
        "a drain waits for what is on its way",
        "engine/engine.py",
        "        await self._outbox.drain(max(left_ms, _SENDS_GRACE_MS) if timeout_ms else 0)\n",
        "",
        ("tests/engine/test_drain.py",),
    ),
    Mutant(
        "ask: a call that is asked about does not start before it",
        "engine/calls.py",
        "            return None if question is None or await self._is_granted(question) else question\n",
        "            return None\n",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "ask: the calls of a step are recorded with the question",
        "engine/calls.py",
        "raise Parked(self._asking(verdict, use, call), self._shown(verdict), moves)",
        "raise Parked(self._asking(verdict, use, call), self._shown(verdict))",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "ask: what a person denied is not made",
        "engine/calls.py",
        "        if questions.decide(answer) is Decision.DENY:",
        "        if not answer:",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "ask: a question that has expired allows nothing",
        "engine/calls.py",
        "        if answer == questions.EXPIRED:",
        "        if not answer:",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "ask: one answer is for one call",
        "engine/calls.py",
        'return question if _is_about(question.id, call) else replace(question, id=f"{question.id}:{call.id}")',
        "return question",
        ("tests/engine/test_calls.py",),
    ),
    Mutant(
        "ask: a denial outlives the question",
        "engine/calls.py",
        "        return said[-1] if said else None\n",
        "        return None\n",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "call: one that has ended is not made again",
        "engine/calls.py",
        "if call.state not in effects.ENDED",
        "if call.state is not None",
        ("tests/engine/test_calls.py",),
    ),
    Mutant(
        "call: an intent is durable before its start",
        "engine/calls.py",
        "        await self._save([self._started(use, call) for use, call in free], starts)\n",
        "        saving = asyncio.create_task(self._save([self._started(use, call) for use, call in free], starts))\n"
        "        await asyncio.sleep(0)\n        self._saving = saving\n",
        ("tests/engine/test_calls.py",),
    ),
    Mutant(
        "call: a turn at rest gives up its place",
        "engine/dispatcher.py",
        "max(len(self._tasks) - len(self._resting), 0)",
        "len(self._tasks)",
        ("tests/agent/test_loop.py",),
    ),
    Mutant(
        "loop: a masked secret is no argument",
        "agent/loop.py",
        "        if MASK in call.args:",
        "        if not call.args:",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "loop: steps count on across attempts",
        "agent/loop.py",
        "range(context.last_step(self._work) + 1, self._agent.steps_max + 1)",
        "range(1, self._agent.steps_max + 1)",
        ("tests/agent/test_loop.py",),
    ),
    Mutant(
        "loop: a budget is asked about before each step",
        "agent/loop.py",
        "        self._spent = self._spent.plus(used)\n",
        "",
        ("tests/agent/test_loop_questions.py",),
    ),
    Mutant(
        "loop: nothing private for a stranger",
        "core/trust.py",
        "    if session.channel in UNTRUSTED:\n",
        "    if not session.channel:\n",
        ("tests/agent/test_prompt.py",),
    ),
    Mutant(
        "loop: nothing of the operator's for a tenant",
        "core/trust.py",
        "session.owner == LOCAL or session.owner in owners",
        "session.owner",
        ("tests/agent/test_prompt.py", "tests/agent/test_toolbox.py"),
    ),
    Mutant(
        "recall: nothing private for a stranger",
        "core/recall.py",
        "trust_in(session) is not Trust.STRANGER",
        "bool(trust_in(session))",
        ("tests/unit/test_recall.py", "tests/engine/test_recall.py"),
    ),
    Mutant(
        "recall: one waits for all",
        "core/breaker.py",
        "return not self.is_tried and now_ms >= self.open_until",
        "return now_ms >= self.open_until",
        ("tests/unit/test_breaker.py", "tests/engine/test_recall.py"),
    ),
    Mutant(
        "recall: nobody asks again so soon",
        "core/breaker.py",
        "return not self.is_tried and now_ms >= self.open_until",
        "return not self.is_tried",
        ("tests/unit/test_breaker.py", "tests/engine/test_recall.py"),
    ),
    Mutant(
        "recall: all together are bounded",
        "core/recall.py",
        "        if len(text) > room:\n",
        "        if len(text) < 0:\n",
        ("tests/unit/test_recall.py", "tests/engine/test_recall.py"),
    ),
    Mutant(
        "recall: nothing ends the fence from inside",
        "agent/remembered.py",
        "    return _TAGS.sub(_turned, one_line(text))",
        "    return one_line(text)",
        ("tests/agent/test_prompt.py",),
    ),
    Mutant(
        "door: only under its own names",
        "web/guard.py",
        "    if not _is_ours(rules, host):",
        "    if not host:",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: no other site",
        "web/guard.py",
        "    if (origin is not None and not _is_own(rules, origin, host)) or",
        "    if (origin is not None and not host) or",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: no other site, by what the browser says",
        "web/guard.py",
        'headers.get("sec-fetch-site", "none") not in _OWN_SITE',
        'not headers.get("sec-fetch-site", "none")',
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: guests on loopback only",
        "web/guard.py",
        "return is_loopback(self._rules.host) and not asked",
        "return not asked",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: guests only while nothing is asked for",
        "web/guard.py",
        "self._rules.closed or self._keyring.closes",
        "self._rules.closed",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: what is shown is judged",
        "web/guard.py",
        "            return replace(STRANGER, wait_s=self._failures.take())",
        "            return GUEST",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: a cookie at its own port",
        "web/guard.py",
        ".get(cookie_name(port))",
        ".get(cookie_name(8420))",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: a write says where it came from",
        "web/guard.py",
        'if method not in _READS and "origin" not in headers:',
        "if not method:",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: a revoked key opens nothing",
        "web/keyring.py",
        " if key.revoked_at is None}",
        "}",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: a change counts at once",
        "desk/mirror.py",
        "        while self._known != self._heard:",
        "        while self._known > self._heard:",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: a refusal takes no token",
        "web/throttle.py",
        "        if not wait_s:\n            self._left -= MINUTE_MS",
        "        self._left -= MINUTE_MS",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "door: passwords are not guessed",
        "web/signin.py",
        "if wait_s := self._guesses.wait_s():",
        "if wait_s := 0:",
        ("tests/web/test_signin.py",),
    ),
    Mutant(
        "door: admin is the operator's",
        "desk/keys.py",
        "    if ADMIN in plan.scopes and plan.owner != LOCAL:",
        "    if ADMIN in plan.scopes and not plan.owner:",
        ("tests/web/test_keys.py",),
    ),
    Mutant(
        "door: nothing in the open without a key",
        "app.py",
        "if is_exposed(server) and not any(map(opens_api, await store.keys.list())):",
        "if is_exposed(server) and not await store.keys.list():",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "tenants: sessions",
        "desk/reading.py",
        "        if session.owner != self.owner:",
        "        if not session.owner:",
        ("tests/web/test_tenants.py",),
    ),
    Mutant(
        "tenants: processes",
        "desk/processes.py",
        "        if found.owner != self.owner:",
        "        if not found.owner:",
        ("tests/web/test_tenants.py",),
    ),
    Mutant(
        "tenants: jobs",
        "desk/jobs.py",
        "        if job is None or job.owner != self.owner:",
        "        if job is None:",
        ("tests/web/test_tenants.py",),
    ),
    Mutant(
        "tenants: what the machine is like",
        "desk/local.py",
        "        if self.owner != LOCAL:",
        "        if not self.owner:",
        ("tests/web/test_tenants.py",),
    ),
    Mutant(
        "view: what a summary stands for is left out",
        "engine/histories.py",
        "    entries = _from_the_summary_on(fresh) if after else fresh\n",
        "    entries = fresh\n",
        ("tests/agent/test_loop_compaction.py",),
    ),
    Mutant(
        "process: whoever claims it first decides",
        "agent/processes/keeper.py",
        "    except FileExistsError:\n        return False\n",
        "    except FileExistsError:\n        return True\n",
        ("tests/processes/test_keeper.py",),
    ),
    Mutant(
        "process: written down before it runs",
        "agent/processes/keeper.py",
        '            if os.read(go, 1) != b"!":\n                os._exit(code)\n',
        "            os.read(go, 1)\n",
        ("tests/processes/test_keeper.py",),
    ),
    Mutant(
        "process: the whole group ends",
        "agent/processes/keeper.py",
        "            os.killpg(self.pid, number)\n",
        "            os.kill(self.pid, number)\n",
        ("tests/processes/test_keeper.py",),
    ),
    Mutant(
        "process: a number alone is nobody",
        "agent/processes/identity.py",
        'return fields[0] if int(fields[19]) == self.born else b""',
        "return fields[0]",
        ("tests/processes/test_keeper.py",),
    ),
    Mutant(
        "process: nobody lives on after a boot",
        "agent/processes/identity.py",
        "if self.boot != current_boot():",
        "if not self.boot:",
        ("tests/processes/test_keeper.py",),
    ),
    Mutant(
        "process: its end is told under a key",
        "agent/processes/watcher.py",
        'dedupe_key=f"process:{process.id}:{what}"',
        "dedupe_key=None if what else process.id",
        ("tests/processes/test_watcher.py", "tests/processes/test_crash.py"),
    ),
    Mutant(
        "process: a match is noted before it is told",
        "agent/processes/watcher.py",
        "            await asyncio.to_thread(folder.save_watch, watch)\n",
        "",
        ("tests/processes/test_watcher.py",),
    ),
    Mutant(
        "process: what was never started does not run for ever",
        "agent/processes/watcher.py",
        "            self._keeping.folder(process).void()\n",
        "",
        ("tests/processes/test_watcher.py",),
    ),
    Mutant(
        "process: a promise only where it can be kept",
        "agent/tools/terminal.py",
        "can = site.delivers_later",
        "can = site.delivers_later or True",
        ("tests/processes/test_terminal.py",),
    ),
    Mutant(
        "process: another conversation's is not there",
        "agent/tools/process.py",
        "if process.owner != site.session.owner or (await",
        "if process.owner == site.session.key or not (await",
        ("tests/processes/test_terminal.py",),
    ),
    Mutant(
        "process: a cancelled call ends its group",
        "agent/processes/foreground.py",
        "nothing of it outlives the call.\n            _signal(transport.get_pid(), signal.SIGKILL)\n",
        "nothing of it outlives the call.\n",
        ("tests/processes/test_terminal.py",),
    ),
    Mutant(
        "process: a call cancelled while it starts ends its group",
        "agent/processes/foreground.py",
        "transport, _ = await spawning\n            _signal(transport.get_pid(), signal.SIGKILL)\n",
        "transport, _ = await spawning\n",
        ("tests/processes/test_terminal.py",),
    ),
    Mutant(
        "access: a cookie is no code",
        "store/access.py",
        "WHERE digest = :digest AND purpose = 'code' AND",
        "WHERE digest = :digest AND",
        ("tests/conformance/test_access.py",),
    ),
    Mutant(
        "access: a code is no cookie",
        "store/access.py",
        "WHERE digest = :digest AND purpose = 'cookie' AND",
        "WHERE digest = :digest AND",
        ("tests/conformance/test_access.py",),
    ),
    Mutant(
        "access: a cookie expires",
        "store/access.py",
        "AND purpose = 'cookie' AND expires_at > :now",
        "AND purpose = 'cookie' AND CAST(:now AS BIGINT) > 0",
        ("tests/conformance/test_access.py",),
    ),
    Mutant(
        "access: every node hears of a revoked key",
        "store/access.py",
        'lambda: _run(_REVOKE, params), wakes=lambda _: ("keys",)',
        "lambda: _run(_REVOKE, params)",
        ("tests/conformance/test_access.py",),
    ),
    Mutant(
        "expiry: a conversation that was just used is left alone",
        "store/sessions.py",
        "WHERE id = :id AND updated_at = :used_at RETURNING id",
        "WHERE id = :id AND CAST(:used_at AS BIGINT) > 0 RETURNING id",
        ("tests/conformance/test_sessions.py",),
    ),
    Mutant(
        "expiry: what is pinned is kept",
        "store/sessions.py",
        "AND s.one_shot = 0 AND s.pinned = 0",
        "AND s.one_shot = 0",
        ("tests/conformance/test_sessions.py",),
    ),
    Mutant(
        "leaving out: once",
        "store/settlement.py",
        'if not (yield Run(_UNDONE, {"id": turn_id})):',
        'if (yield Run(_UNDONE, {"id": turn_id})) is not None:',
        ("tests/conformance/test_forks.py",),
    ),
    Mutant(
        "verbatim: no agent",
        "engine/worker.py",
        "if work.turn.verbatim else",
        "if work.turn.attempt < 0 else",
        ("tests/engine/test_verbatim.py",),
    ),
    Mutant(
        "secrets in what a client sends along",
        "engine/inbox.py",
        "request=request)",
        "request=message.request)",
        ("tests/engine/test_secrets.py",),
    ),
    Mutant(
        "secrets in what was said before",
        "engine/inbox.py",
        "prior=prior, request=request)",
        "request=request)",
        ("tests/engine/test_secrets.py",),
    ),
    Mutant(
        "no answer is no refusal",
        "engine/outbox.py",
        """            await self._settle(claimed, Event.LOSE, error=f"{error}: it may or may not have arrived")""",
        """            await self._settle(claimed, after_rejection(claimed), error=str(error))""",
        ("tests/channels/test_departures.py",),
    ),
    Mutant(
        "a departure is noticed",
        "egress.py",
        "if departure.began:",
        "if False:",
        ("tests/channels/test_url.py", "tests/channels/test_departures.py"),
    ),
    Mutant(
        "the wait that the far side wants",
        "engine/outbox.py",
        "self._clock.now_ms(), error.retry_after_s, jitter)",
        "self._clock.now_ms(), None, jitter)",
        ("tests/channels/test_departures.py",),
    ),
    Mutant(
        "no wait for an hour that has been",
        "store/deliveries.py",
        " OR refused_at > :skewed",
        "",
        ("tests/conformance/test_deliveries.py",),
    ),
    Mutant(
        "a wait is no jump of the clock",
        "store/deliveries.py",
        "AND (state <> 'retry' OR created_at > :now OR refused_at > :skewed)",
        "",
        ("tests/channels/test_departures.py",),
    ),
    Mutant(
        "targets are checked when they are named",
        "targets.py",
        "        self._carriers[channel].check(target)\n",
        "",
        ("tests/desk/test_obligations.py",),
    ),
    Mutant(
        "a URL that leads inside",
        "channels/url.py",
        "        self.check(sent.target)\n",
        "",
        ("tests/channels/test_url.py",),
    ),
    Mutant(
        "webhook: the signature is right",
        "channels/webhook/signatures.py",
        "    if not right:\n",
        "    if not shown:\n",
        ("tests/webhooks/test_signatures.py",),
    ),
    Mutant(
        "webhook: the time is now",
        "channels/webhook/signatures.py",
        "if verified.signed_at is not None and abs(verified.signed_at * 1000 - now_ms) > TOLERANCE_S * 1000:",
        "if verified.signed_at is not None and verified.signed_at * 1000 - now_ms > TOLERANCE_S * 1000:",
        ("tests/webhooks/test_signatures.py",),
    ),
    Mutant(
        "webhook: a header is there once",
        "channels/webhook/head.py",
        "        if len(values) >= _MANY:\n",
        "        if not values:\n",
        ("tests/webhooks/test_signatures.py", "tests/webhooks/test_delivery.py"),
    ),
    Mutant(
        "webhook: a replay is the same delivery",
        "channels/webhook/delivery.py",
        "or _marked(verified) or new_id",
        "or new_id",
        ("tests/webhooks/test_delivery.py",),
    ),
    Mutant(
        "webhook: unsigned only for this machine",
        "config/problems.py",
        '    elif not is_loopback(host):\n        problems["insecure_no_auth"]',
        '    elif not host:\n        problems["insecure_no_auth"]',
        ("tests/webhooks/test_config.py",),
    ),
    Mutant(
        "webhook: a key for that route",
        "web/receiving.py",
        "if principal.may(scope):",
        "if principal.known:",
        ("tests/webhooks/test_gateway.py",),
    ),
    Mutant(
        "webhook: what came before counts for nothing",
        "web/receiving.py",
        "                window.give_back()\n",
        "                pass\n",
        ("tests/webhooks/test_gateway.py",),
    ),
    Mutant(
        "webhook: what came before is known before the rate",
        "web/receiving.py",
        '            if first := await call.desk.seen(message.dedupe_key or ""):',
        "            if first := None:",
        ("tests/webhooks/test_gateway.py",),
    ),
    Mutant(
        "webhook: a payload names no place of its own",
        "channels/webhook/route.py",
        'value is None or not _SAFE.fullmatch(value) or ".." in value',
        "value is None",
        ("tests/webhooks/test_route.py",),
    ),
    Mutant(
        "webhook: the mask learns new secrets",
        "desk/webhooks.py",
        "        self._redaction.learn(told_of(secret))\n",
        "        del secret\n",
        ("tests/webhooks/test_gateway.py",),
    ),
    Mutant(
        "face: what is unpacked counts",
        "web/requests.py",
        "            if len(raw) > most:\n",
        "            if not len(raw) <= 100 * most:\n",
        ("tests/web/test_bad_input.py",),
    ),
    Mutant(
        "face: a body has its time",
        "web/requests.py",
        "        async with asyncio.timeout(BODY_TIMEOUT_S):",
        "        async with asyncio.timeout(None):",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "face: a head has its time",
        "web/protocol.py",
        "        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)",
        "        self._head_timer = self.loop.call_later(3600, self.transport.close)",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "face: whoever takes nothing is let go",
        "web/protocol.py",
        "        self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self.transport.abort)\n",
        "        pass\n",
        ("tests/web/test_readers.py",),
    ),
    Mutant(
        "face: a reader that has left is forgotten",
        "web/protocol.py",
        "        if self.when_lost:\n            self.when_lost()\n",
        "        pass\n",
        ("tests/web/test_readers.py",),
    ),
    Mutant(
        "face: nobody is greeted behind an end",
        "web/events.py",
        "            if reader in self._open:\n",
        "            if reader:\n",
        ("tests/web/test_readers.py",),
    ),
    Mutant(
        "face: nothing stands behind the last event",
        "channels/openai/events.py",
        "        if self._ended:\n",
        "        if not entry:\n",
        ("tests/openai/test_folds.py",),
    ),
    Mutant(
        "face: a path leads down only",
        "web/application.py",
        "    if _climbs(request.scope):",
        "    if not request.scope:",
        ("tests/web/test_bad_input.py",),
    ),
    Mutant(
        "feed: a look that began earlier is not shared",
        "engine/feed.py",
        "        self._looks.pop(session_id, None)\n        for follower",
        "        for follower",
        ("tests/engine/test_feed.py",),
    ),
    Mutant(
        "abuse: trailers are no headers",
        "web/protocol.py",
        "        if self._in_head:\n            super().on_header",
        "        if name:\n            super().on_header",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "abuse: a sign of life is no request",
        "web/protocol.py",
        "(self._in_head or self._is_idle) and",
        "self._in_head and",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "abuse: a crowd has an end",
        "web/protocol.py",
        "CONNECTIONS_MAX + CROWD_MAX:",
        "CONNECTIONS_MAX + CROWD_MAX * 1_000:",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "abuse: bodies have a limit together",
        "web/requests.py",
        "            if _Bodies.size > BODIES_MAX:",
        "            if _Bodies.size > BODIES_MAX * 1_000:",
        ("tests/web/test_limits.py",),
    ),
    Mutant(
        "abuse: a revoked key loses its streams",
        "web/keyring.py",
        "                connection.abort()",
        "                pass",
        ("tests/web/test_keys.py",),
    ),
    Mutant(
        "abuse: a cookie needs its proof",
        "web/guard.py",
        "        if PROOF not in headers:",
        "        if not headers:",
        ("tests/web/test_guard.py",),
    ),
    Mutant(
        "abuse: a guest delivers nothing",
        "web/jobs.py",
        "            demand(call.principal, ADMIN)",
        "            pass",
        ("tests/web/test_obligations.py",),
    ),
    Mutant(
        "abuse: a replay keeps its first id",
        "web/receiving.py",
        "found = self._replays.first(route.name, verified.mark, found)",
        "pass",
        ("tests/webhooks/test_gateway.py",),
    ),
    Mutant(
        "abuse: a time is no part of a body",
        "channels/webhook/signatures.py",
        "    if _TIMED.match(body):",
        "    if not head:",
        ("tests/webhooks/test_signatures.py",),
    ),
)


def main() -> int:
    words = sys.argv[1:]
    chosen = [each for each in MUTANTS if not words or any(word in each.name for word in words)]
    survivors = [each.name for each in chosen if _survives(each)]
    print(f"\n{len(chosen)} guards removed, {len(chosen) - len(survivors)} noticed")
    for name in survivors:
        print(f"  NOBODY NOTICED: {name}")
    return 1 if survivors else 0


def _survives(mutant: Mutant) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        file = source / "holdfast" / mutant.file
        text = file.read_text()
        if text.count(mutant.guard) != 1:
            print(f"  ?      {mutant.name}: its guard stands {text.count(mutant.guard)} times in {mutant.file}", flush=True)
            return True
        file.write_text(text.replace(mutant.guard, mutant.without))
        started = time.monotonic()
        noticed = _red(mutant, source)
        print(f"  {'red' if noticed else 'GREEN':6} {mutant.name}  ({time.monotonic() - started:.0f} s)", flush=True)
        return not noticed


def _red(mutant: Mutant, source: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
    environment = os.environ | {"PYTHONPATH": str(source)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return True  # Work that never ends is noticed by whoever waits for it.
    if done.returncode not in (0, 1):
        # Neither passed nor failed: the mutant did not even run, which proves nothing.
        print(done.stdout[-2000:], done.stderr[-2000:])
        return False
    return done.returncode == 1


if __name__ == "__main__":
    sys.exit(main())
