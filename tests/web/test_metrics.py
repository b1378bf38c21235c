"""What Prometheus reads: true counts, in its own format."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.web.metrics import BUCKETS, Meter
from tests.web.house import House, open_house

LINE = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\})? (-?[0-9.e+-]+|\+Inf)')


async def metrics(house: House) -> dict[str, float]:
    """Read all samples; every line is one, or describes the one below."""
    answer = await house.web.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, float] = {}
    described: set[str] = set()
    assert answer.text.endswith("\n")
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            described.add(line.split()[2])
        elif not line.startswith("# HELP "):
            sample = LINE.fullmatch(line)
            assert sample, line
            assert any(sample[1].startswith(name) for name in described), line
            found[sample[1] + (sample[2] or "")] = float(sample[3])
    return found


async def test_what_was_accepted_is_settled_or_in_flight(home: Path) -> None:
    """CONSERVATION: the three always add up, and so do the states."""
    async with open_house(home) as house:
        await house.settled((await house.send(await house.session(), "count to 1"))["turn_id"])
        waiting = await house.send(await house.session(), "wait 60 seconds")
        await house.in_state(waiting["turn_id"], "running")
        found = await metrics(house)
        assert (found["holdfast_turns_accepted"], found["holdfast_turns_settled"], found["holdfast_turns_in_flight"]) == (
            2,
            1,
            1,
        )
        states = {name: number for name, number in found.items() if name.startswith("holdfast_turns{")}
        assert sum(states.values()) == 2
        assert (states['holdfast_turns{state="running"}'], states['holdfast_turns{state="completed"}']) == (1, 1)
        assert found["holdfast_turns_running"] == 1
        assert found['holdfast_obligations{kind="turns"}'] == 1
        assert (found["holdfast_ready"], found["holdfast_store_up"]) == (1, 1)
        assert found["holdfast_uptime_seconds"] > 0
        assert 0 <= found["holdfast_loop_lag_seconds"] < 5


async def test_requests_are_counted_by_template_and_never_by_what_was_asked(home: Path) -> None:
    async with open_house(home) as house:
        for number in range(5):
            await house.web.get(f"/api/turns/trn_{number}")
            await house.web.get(f"/nowhere/{number}")
        await house.session()
        found = await metrics(house)
        assert found['holdfast_http_requests_total{method="GET",route="/api/turns/{id}",status="4xx"}'] == 5
        assert found['holdfast_http_requests_total{method="GET",route="",status="4xx"}'] == 5
        assert found['holdfast_http_requests_total{method="POST",route="/api/sessions",status="2xx"}'] == 1
        labels = 'method="GET",route="/api/turns/{id}"'
        assert found[f"holdfast_http_request_seconds_count{{{labels}}}"] == 5
        assert found[f'holdfast_http_request_seconds_bucket{{{labels},le="+Inf"}}'] == 5
        assert not any("trn_" in name for name in found)


async def test_open_streams_are_counted_and_their_time_is_not(home: Path) -> None:
    async with open_house(home) as house:
        session_id = await house.session()
        async with house.events(session_id):
            assert (await metrics(house))["holdfast_streams_open"] == 1
        assert not any("seconds" in name and "events" in name for name in await metrics(house))


async def test_whoever_counts_needs_a_key_where_there_is_one(home: Path) -> None:
    async with open_house(home, api_key="a-key-for-the-operator") as house:
        assert (await metrics(house))["holdfast_ready"] == 1
        del house.web.headers["authorization"]
        assert (await house.web.get("/metrics")).status_code == 401


def test_the_buckets_of_a_histogram_hold_all_below_them() -> None:
    meter = Meter()
    for seconds in (0.001, 0.005, 0.006, 100.0):
        meter.count("GET", "/", 200, seconds)
    counts = [line.rpartition(" ")[2] for line in meter.lines() if "_bucket" in line]
    assert counts == ["2", *["3"] * (len(BUCKETS) - 1), "4"]
