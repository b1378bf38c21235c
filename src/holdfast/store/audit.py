"""The audit: every invariant that can be read off the rows, as a query that must find nothing.

Tests run it after every step and every crash; `holdfast drill` runs it on the user's own machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from holdfast.core.delivery import ASIDE_LAST
from holdfast.core.sessions import NO_OWNER
from holdfast.store.database import Database, Dialect, Run, Transaction
from holdfast.store.passages import INDEXED

_IN_FLIGHT = "('queued', 'running', 'waiting')"

# Each query lists the offenders.
CHECKS: Mapping[str, str] = MappingProxyType(
    {
        "A1 accepted turns have an entry that says so": """
            SELECT t.id FROM turns t WHERE NOT EXISTS
                (SELECT 1 FROM entries e WHERE e.turn_id = t.id AND e.kind = 'turn.accepted')
        """,
        "A1 a settled turn has its visible outcome": f"""
            SELECT t.id FROM turns t WHERE t.state NOT IN {_IN_FLIGHT} AND NOT EXISTS
                (SELECT 1 FROM entries e WHERE e.turn_id = t.id AND e.kind = 'turn.' || t.state)
        """,
        "A1 nothing in flight is left in a session that is over": f"""
            SELECT t.id FROM turns t JOIN sessions s ON s.id = t.session_id
             WHERE t.state IN {_IN_FLIGHT} AND s.state = 'ended' AND s.one_shot = 0
        """,
        "A3 one turn per dedupe key": "SELECT turn_id FROM dedupe GROUP BY turn_id HAVING COUNT(*) > 1",
        "T1 one live turn per session": """
            SELECT session_id FROM turns WHERE state IN ('running', 'waiting') GROUP BY session_id HAVING COUNT(*) > 1
        """,
        "T2 turns run in acceptance order": """
            SELECT late.id FROM turns late JOIN turns early
                ON early.session_id = late.session_id AND early.ordinal < late.ordinal
             WHERE late.attempt > 0 AND early.state IN ('queued', 'running', 'waiting')
        """,
        "T2 ordinals are gapless": """
            SELECT s.id FROM sessions s LEFT JOIN turns t ON t.session_id = s.id
             GROUP BY s.id, s.turns HAVING COUNT(t.id) <> s.turns OR COALESCE(MAX(t.ordinal), 0) <> s.turns
        """,
        "T3 a final turn was closed exactly once": """
            SELECT t.id FROM turns t JOIN entries e ON e.turn_id = t.id
             WHERE e.kind IN ('turn.completed', 'turn.failed', 'turn.cancelled') GROUP BY t.id HAVING COUNT(*) > 1
        """,
        "T3 nothing in flight was closed for good": f"""
            SELECT t.id FROM turns t JOIN entries e ON e.turn_id = t.id
             WHERE t.state IN {_IN_FLIGHT} AND e.kind IN ('turn.completed', 'turn.failed', 'turn.cancelled')
        """,
        "J1 what is awaited is searched for until an entry says that it is over": """
            SELECT e.turn_id FROM entries e
              LEFT JOIN recoveries r ON r.turn_id = e.turn_id AND r.attempt = e.attempt
              LEFT JOIN entries o ON o.turn_id = e.turn_id AND o.attempt = e.attempt AND o.kind = 'turn.recovered'
             WHERE e.kind = 'turn.interrupted' AND e.data ->> 'recovery' = 'pending'
               AND (r.turn_id IS NULL) = (o.turn_id IS NULL)
        """,
        "J2 the journal of a session is gapless": """
            SELECT s.id FROM sessions s LEFT JOIN entries e ON e.session_id = s.id
             GROUP BY s.id, s.seq HAVING COUNT(e.seq) <> s.seq OR COALESCE(MAX(e.seq), 0) <> s.seq
        """,
        "J2 the entries of a running attempt are gapless": """
            SELECT t.id FROM turns t JOIN entries e ON e.turn_id = t.id AND e.attempt = t.attempt AND e.nth IS NOT NULL
             WHERE t.state IN ('running', 'waiting', 'completed', 'failed')
             GROUP BY t.id, t.nth HAVING COUNT(e.nth) <> t.nth OR MAX(e.nth) <> t.nth
        """,
        "J1 nothing is shown of a turn behind its cancel": """
            SELECT e.turn_id FROM entries e JOIN entries c ON c.turn_id = e.turn_id AND c.kind = 'turn.cancelled'
             WHERE e.seq > c.seq AND e.kind NOT IN ('usage', 'turn.recovered', 'turn.undone')
        """,
        "D1 at most one resend, labelled": "SELECT id FROM deliveries WHERE repeats > 1",
        "D2 nothing is sending for a dead node once swept": """
            SELECT d.id FROM deliveries d LEFT JOIN nodes n ON n.id = d.node_id
             WHERE d.state = 'sending' AND n.id IS NULL
        """,
        "T3 nothing works for a turn that was cancelled": f"""
            SELECT t.id FROM turns t JOIN turns p ON p.id = t.parent_turn_id
             WHERE t.state IN {_IN_FLIGHT} AND p.state = 'cancelled'
        """,
        "D3 parts leave in order": f"""
            SELECT late.id FROM deliveries late JOIN deliveries early
                ON early.turn_id = late.turn_id AND early.target = late.target AND early.part < late.part
             WHERE late.attempt > 0 AND early.attempt = 0 AND early.state IN ('pending', 'retry')
               AND (early.part > 0 OR late.part <= {ASIDE_LAST})
        """,
        "D3 parts are gapless": """
            SELECT turn_id FROM deliveries WHERE part > 0 AND turn_id IS NOT NULL
             GROUP BY turn_id HAVING COUNT(DISTINCT part) <> MAX(part)
        """,
        "M1 each remembered turn is in exactly one segment": """
            SELECT t.id FROM turns t LEFT JOIN segments m ON m.session_id = t.session_id
                AND t.generation BETWEEN m.first_generation AND m.last_generation
             WHERE t.generation IS NOT NULL GROUP BY t.id HAVING COUNT(m.id) <> 1
        """,
        "M1 generations are gapless": """
            SELECT s.id FROM sessions s LEFT JOIN turns t ON t.session_id = s.id AND t.generation IS NOT NULL
             GROUP BY s.id, s.generation HAVING COUNT(t.id) <> s.generation
                OR COALESCE(MAX(t.generation), 0) <> s.generation
        """,
        "M2 no segment is committed before an older one": """
            SELECT late.id FROM segments late JOIN segments early
                ON early.session_id = late.session_id AND early.first_generation < late.first_generation
             WHERE late.state IN ('committing', 'committed') AND early.state NOT IN ('committed', 'waived')
        """,
        "M2 nothing is waived or committed without saying when": """
            SELECT id FROM segments WHERE (state IN ('committed', 'waived')) <> (settled_at IS NOT NULL)
        """,
        "M2 a provider was replayed nothing that was its own": """
            SELECT r.segment_id FROM replays r JOIN segments m ON m.id = r.segment_id WHERE m.owner = r.owner
        """,
        "M4 what was absorbed has a receipt": "SELECT segment_id FROM absorbed WHERE receipt = ''",
        "M4 what is remembered is there once": """
            SELECT MIN(id) FROM memories GROUP BY owner, folded HAVING COUNT(*) > 1
        """,
        "Q1 a turn that waits has one open question": """
            SELECT t.id FROM turns t LEFT JOIN questions q ON q.turn_id = t.id AND q.answer IS NULL
             WHERE t.state = 'waiting' GROUP BY t.id HAVING COUNT(q.id) <> 1
        """,
        "Q1 an open question has a turn that waits": """
            SELECT q.id FROM questions q LEFT JOIN turns t ON t.id = q.turn_id AND t.state = 'waiting'
             WHERE q.answer IS NULL AND t.id IS NULL
        """,
        "Q2 a question is of the session and the owner of its turn": """
            SELECT q.id FROM questions q JOIN turns t ON t.id = q.turn_id JOIN sessions s ON s.id = t.session_id
             WHERE q.session_id <> t.session_id OR q.owner <> s.owner
        """,
        "Q2 what was granted was asked": """
            SELECT g.fingerprint FROM grants g
             WHERE g.session_id IS NOT NULL AND NOT EXISTS
                (SELECT 1 FROM questions q WHERE q.session_id = g.session_id AND q.owner = g.owner
                    AND ' ' || q.fingerprint || ' ' LIKE '% ' || g.fingerprint || ' %'
                    AND q.about = 'approval' AND q.answer IS NOT NULL)
        """,
        "S3 a background process has a session of its owner": """
            SELECT p.id FROM processes p LEFT JOIN sessions s ON s.id = p.session_id AND s.owner = p.owner
             WHERE s.id IS NULL
        """,
        "V1 a verbatim turn is answered with its own words": """
            SELECT t.id FROM turns t JOIN entries a ON a.turn_id = t.id AND a.kind = 'turn.accepted'
              JOIN entries c ON c.turn_id = t.id AND c.kind = 'turn.completed'
             WHERE t.verbatim = 1 AND t.joined_to IS NULL
               AND COALESCE(a.data ->> 'text', '') <> COALESCE(c.data ->> 'text', '')
        """,
        "S4 a delivery is of the owner of its session": """
            SELECT d.id FROM deliveries d LEFT JOIN sessions s ON s.id = d.session_id AND s.owner = d.owner
             WHERE s.id IS NULL AND d.session_id IS NOT NULL
        """,
        "S4 a segment is of the owner of its session": """
            SELECT m.id FROM segments m LEFT JOIN sessions s ON s.id = m.session_id AND s.owner = m.person
             WHERE s.id IS NULL
        """,
        "S4 a word is of the owner of its memory": """
            SELECT w.memory_id FROM memory_words w LEFT JOIN memories m ON m.id = w.memory_id AND m.owner = w.owner
             WHERE m.id IS NULL
        """,
        "S4 a word of a title is of a session of its owner that has one": """
            SELECT w.session_id FROM title_words w
              LEFT JOIN sessions s ON s.id = w.session_id AND s.owner = w.owner AND s.title IS NOT NULL
             WHERE s.id IS NULL
        """,
        "F1 what can be found is there": """
            SELECT i.id FROM indexed i LEFT JOIN entries e ON e.id = i.id AND e.kind IN ('turn.accepted', 'turn.completed')
             WHERE e.id IS NULL
        """,
        "F1 what can be searched is either indexed or waits for it": """
            SELECT e.id FROM entries e LEFT JOIN indexed i ON i.id = e.id LEFT JOIN unsearched u ON u.id = e.id
             WHERE e.kind IN ('turn.accepted', 'turn.completed') AND (i.id IS NULL) = (u.id IS NULL)
        """,
        "F1 what waits to be indexed is there": """
            SELECT u.id FROM unsearched u
              LEFT JOIN entries e ON e.session_id = u.session_id AND e.seq = u.seq AND e.id = u.id
             WHERE e.id IS NULL
        """,
        "S1 a one-shot session whose turn is at rest has ended": f"""
            SELECT s.id FROM sessions s WHERE s.one_shot = 1 AND s.state <> 'ended' AND NOT EXISTS
                (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state IN {_IN_FLIGHT})
        """,
        "S2 three strikes suspend": "SELECT id FROM sessions WHERE strikes >= 3 AND state = 'open'",
        "X1 no effectful tool starts twice": """
            SELECT t.id FROM tool_calls t WHERE t.effect = 'effectful' AND t.starts > 1
        """,
        "X1 no tool is running outside a running turn": """
            SELECT c.id FROM tool_calls c JOIN turns t ON t.id = c.turn_id
             WHERE c.state = 'started' AND t.state <> 'running'
        """,
        "CONSERVATION accepted = settled + in flight": """
            SELECT s.id FROM sessions s LEFT JOIN entries e ON e.session_id = s.id AND e.kind = 'turn.accepted'
             GROUP BY s.id, s.turns HAVING COUNT(e.seq) <> s.turns
        """,
    }
)


# What is left of a session that was removed keeps no promise any more, so that it is looked past where there is any.
_REMOVED = f"SELECT 1 FROM sessions WHERE owner = '{NO_OWNER}' LIMIT 1"


_OF_SESSIONS = (
    *("turns", "entries", "segments", "processes", "recoveries", "tool_calls", "deliveries", "questions"),
    *("unsearched", "title_words"),
)


def _past_removed(dialect: Dialect) -> str:
    """Return what shadows the tables with their rows of sessions that are still there."""
    place = "main." if dialect.name == "sqlite" else ""
    kept = f"(SELECT id FROM {place}sessions WHERE owner <> '{NO_OWNER}')"
    # First, because PostgreSQL lets each of these see those before it, and this one must see every entry.
    gone = f"LEFT JOIN {place}entries e ON e.id = i.id WHERE e.id IS NULL OR e.session_id IN {kept}"
    shadows = [f"indexed AS (SELECT i.id FROM {place}{INDEXED[dialect.name]} i {gone})"]
    shadows += [f"sessions AS (SELECT * FROM {place}sessions WHERE owner <> '{NO_OWNER}')"]
    shadows += [f"{table} AS (SELECT * FROM {place}{table} WHERE session_id IN {kept})" for table in _OF_SESSIONS]
    return f"WITH {', '.join(shadows)} "


async def audit(database: Database) -> list[str]:
    """Return every violation as `check: offender`; an empty list is the proof."""
    return await database.read(lambda: _audit(database.dialect))


def _audit(dialect: Dialect) -> Transaction[list[str]]:
    violations: list[str] = []
    whole = f"WITH indexed AS (SELECT id FROM {INDEXED[dialect.name]}) "
    shadows = _past_removed(dialect) if (yield Run(_REMOVED)) else whole
    for name, sql in CHECKS.items():
        offenders = yield Run(shadows + sql)
        violations.extend(f"{name}: {offender[0]}" for offender in offenders)
    return violations
