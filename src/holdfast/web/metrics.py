"""Metrics: what a gateway does and owes, as Prometheus reads it.  It holds counts only, never text from a conversation."""

from __future__ import annotations

import asyncio
import bisect
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from starlette.responses import Response

from holdfast.core.chats import AccountState
from holdfast.core.keys import ADMIN, LOCAL
from holdfast.core.segments import SegmentState
from holdfast.core.turns import TurnState
from holdfast.errors import Unavailable
from holdfast.operations.channels import ChannelView
from holdfast.operations.gateway import Status
from holdfast.operations.memories import Tally
from holdfast.operations.services import ServerServices
from holdfast.web.endpoints import Endpoint, EndpointCall, demand
from holdfast.web.events import Streams

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Upper limits in seconds; what is slower than the last is in none of them.
BUCKETS = (0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0)
# How long a look at the loop takes: it should be woken after this, and later by as much as the loop was busy.
LAG_LOOK_S = 0.01
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels = Mapping[str, str]


class Meter:
    """Requests, counted by route and by how they ended."""

    def __init__(self) -> None:
        self._ended: Counter[tuple[str, str, str]] = Counter()
        self._taken: dict[tuple[str, str], _Histogram] = {}

    def count(self, method: str, route: str, status: int, seconds: float | None) -> None:
        """Count an answer; without seconds, as it is with a stream, only that there was one."""
        self._ended[method, route, f"{status // 100}xx" if status else "left"] += 1
        if seconds is not None:
            self._taken.setdefault((method, route), _Histogram()).add(seconds)

    def lines(self) -> Iterator[str]:
        yield from _head("holdfast_http_requests_total", "counter", "Requests by route and class of status.")
        for (method, route, status), number in sorted(self._ended.items()):
            yield _sample("holdfast_http_requests_total", number, method=method, route=route, status=status)
        yield from _head("holdfast_http_request_seconds", "histogram", "How long answers took, streams left out.")
        for (method, route), taken in sorted(self._taken.items()):
            yield from taken.lines("holdfast_http_request_seconds", {"method": method, "route": route})


class _Histogram:
    """How many were how slow."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect.bisect_left(BUCKETS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        so_far = 0
        for limit, number in zip((*map(str, BUCKETS), "+Inf"), self._counts, strict=True):
            so_far += number
            yield _sample(f"{name}_bucket", so_far, **labels, le=limit)
        yield _sample(f"{name}_sum", round(self._sum, 6), **labels)
        yield _sample(f"{name}_count", so_far, **labels)


class Metrics:
    """What there is to count."""

    def __init__(self, meter: Meter, streams: Streams) -> None:
        self._meter = meter
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/metrics",
                handle=self.show,
                summary="Count what the gateway does and owes, in the format of Prometheus",
                gives=str,
            )
        ]

    async def show(self, call: EndpointCall) -> Response:
        if call.principal.owner != LOCAL:
            # How much others ask is the operator's to know.
            demand(call.principal, ADMIN)
        lag_s = await _lag()
        status = await call.services.gateway.status()
        memory = await _tally(call.services) if status.problem is None else None
        of_memory = _of_memory(memory) if memory else ()
        accounts = await _accounts(call.services) if status.problem is None else ()
        lines = [*_of_status(status), *of_memory, *_of_accounts(accounts), *self._of_process(lag_s), *self._meter.lines()]
        return Response("\n".join(lines) + "\n", media_type=MEDIA_TYPE)

    def _of_process(self, lag_s: float) -> Iterator[str]:
        yield from _gauge("holdfast_streams_open", "Streams of events that are being read.", len(self._streams))
        yield from _gauge("holdfast_loop_lag_seconds", "How much later than it should the loop woke up.", round(lag_s, 6))
        yield from _head("process_cpu_seconds_total", "counter", "Processor time of this process.")
        yield _sample("process_cpu_seconds_total", round(time.process_time(), 3))


async def _lag() -> float:
    due = time.perf_counter() + LAG_LOOK_S
    await asyncio.sleep(LAG_LOOK_S)
    return max(time.perf_counter() - due, 0.0)


async def _tally(services: ServerServices) -> Tally | None:
    try:
        return await services.memories.tally()
    except Unavailable:
        # It has gone away since it was asked for everything else.
        return None


async def _accounts(services: ServerServices) -> Sequence[ChannelView]:
    try:
        return (await services.channels.list()).items
    except Unavailable:
        return ()


def _of_accounts(accounts: Sequence[ChannelView]) -> Iterator[str]:
    """Yield how the accounts of chat platforms stand.  One whose last receive is old is deaf, in any state."""
    if not accounts:
        return
    connected, heard = "holdfast_channel_connected", "holdfast_channel_last_receive_timestamp_seconds"
    yield from _head(connected, "gauge", "Whether a chat account receives.")
    for each in accounts:
        yield _sample(connected, int(each.state is AccountState.CONNECTED), account=each.name, state=each.state)
    yield from _head(heard, "gauge", "When the platform of a chat account last answered a receive.")
    for each in accounts:
        if each.last_receive_at is not None:
            yield _sample(heard, each.last_receive_at / 1000, account=each.name)


def _of_memory(memory: Tally) -> Iterator[str]:
    owed = memory.debt
    kinds = {"open": owed.open, "owed": owed.owed, "parked": owed.parked, "committing": owed.committing}
    yield from _head("holdfast_memory_debt", "gauge", "Memory segments that are not paid yet, by what they wait for.")
    for kind, number in kinds.items():
        yield _sample("holdfast_memory_debt", number, kind=kind)
    yield from _gauge("holdfast_memory_failed", "Memory segments of those owed that were tried in vain.", owed.failed)
    yield from _gauge("holdfast_memory_parked", "Memory segments whose provider cannot be opened here.", owed.parked)
    yield from _head("holdfast_memory_segments", "gauge", "Memory segments by state.")
    sealed = {
        SegmentState.OPEN: owed.open,
        SegmentState.SEALED: owed.owed + owed.parked,
        SegmentState.COMMITTING: owed.committing,
    }
    for state, number in {**sealed, **memory.settled}.items():
        yield _sample("holdfast_memory_segments", number, state=state)
    yield from _head("holdfast_memory_unpaid", "gauge", "Memory segments that are not paid yet, by their provider binding.")
    for binding, number in sorted(memory.unpaid.items()):
        yield _sample("holdfast_memory_unpaid", number, binding=binding)
    yield from _gauge("holdfast_memory_facts", "Facts that are remembered.", memory.facts)


def _of_status(status: Status) -> Iterator[str]:
    yield from _head("holdfast_build_info", "gauge", "Which gateway this is.")
    yield _sample("holdfast_build_info", 1, version=status.version, node=status.node, store=status.store)
    yield from _gauge("holdfast_uptime_seconds", "Since the start of this gateway.", round(status.uptime_s, 3))
    yield from _gauge("holdfast_ready", "Whether new work will be done.", int(status.ready))
    yield from _gauge("holdfast_store_up", "Whether the store answers.", int(status.problem is None))
    yield from _gauge("holdfast_turns_running", "Turns that run on this node.", status.running)
    if status.problem is None:
        # These counts come from the store, so they are left out while it does not answer.
        yield from _owed(status)


def _owed(status: Status) -> Iterator[str]:
    yield from _gauge(
        "holdfast_turns_accepted", "Turns that were accepted: settled and in flight together.", status.accepted
    )
    yield from _gauge("holdfast_turns_settled", "Turns that have come to an end.", status.settled)
    yield from _gauge("holdfast_turns_in_flight", "Turns that have not.", status.in_flight)
    yield from _head("holdfast_turns", "gauge", "Turns by state.")
    for state in TurnState:
        yield _sample("holdfast_turns", status.turns.get(state, 0), state=state)
    if owed := status.obligations:
        yield from _head(
            "holdfast_obligations", "gauge", "What is not settled: answers, messages to be sent, memory segments to be paid."
        )
        for kind, number in (("turns", owed.turns), ("deliveries", owed.deliveries), ("segments", owed.segments)):
            yield _sample("holdfast_obligations", number, kind=kind)
        yield from _gauge("holdfast_turns_retrying", "Turns that wait for their model.", owed.retrying)
    yield from _gauge("holdfast_questions_open", "Questions that turns wait for.", status.questions)
    yield from _gauge("holdfast_processes_running", "Background commands at work.", status.processes)


def _gauge(name: str, meaning: str, value: float) -> Iterator[str]:
    yield from _head(name, "gauge", meaning)
    yield _sample(name, value)


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, value: float, /, **labels: str) -> str:
    shown = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}" if shown else f"{name} {value}"
