"""How many turns may begin on a node, and whose."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.core import admission
from holdfast.core.admission import Isolation, Load, Places, Pressure
from holdfast.core.keys import LOCAL
from holdfast.core.sessions import alone_ms
from holdfast.core.turns import Mode, Turn
from holdfast.ids import SessionId, TurnId

OWNERS = (LOCAL, "a", "b")


@pytest.mark.parametrize(
    ("load", "owners", "room", "shares"),
    [
        (Load(), ["local"], 8, {"local": 8}),
        (Load(), ["local", "a"], 8, {"local": 4, "a": 4}),
        (Load(running={"a": 6}), ["local", "a"], 8, {"local": 7, "a": 1}),
        (Load(tenant_max=3), ["a"], 8, {"a": 3}),
        (Load(running={"a": 3}, tenant_max=3), ["a"], 8, {}),
        (Load(tenants_max=4), ["a", "b", "local"], 9, {"a": 2, "b": 2, "local": 5}),
        (Load(running={"a": 4}, tenants_max=4), ["b", "local"], 2, {"local": 2}),
        (Load(), [], 8, {}),
        (Load(), ["a"], 0, {}),
    ],
)
def test_each_place_goes_to_whoever_has_the_fewest_and_may_have_more(
    load: Load, owners: list[str], room: int, shares: dict[str, int]
) -> None:
    assert load.shares(owners, room) == shares


@pytest.mark.parametrize(
    ("load", "capped"),
    [
        (Load(running={"local": 99}, tenant_max=3, tenants_max=3), False),
        (Load(running={"a": 2}, tenant_max=3, tenants_max=4), False),
        (Load(running={"a": 3}, tenant_max=3), True),
        (Load(running={"a": 2, "b": 2}, tenants_max=4), True),
        (Load(running={"a": 1_000}), False),
    ],
)
def test_a_load_says_whether_a_tenant_may_be_kept_waiting(load: Load, capped: bool) -> None:
    assert load.is_capped is capped


def test_every_share_keeps_to_all_limits_and_wastes_no_place() -> None:
    """Exhaustive over small loads: the room, the share of a tenant, that of all tenants, and fairness."""
    for counts in product(range(4), repeat=3):
        running = dict(zip(OWNERS, counts, strict=True))
        for tenant_max, tenants_max, room in product(range(4), range(6), range(6)):
            load = Load(running=running, tenant_max=tenant_max, tenants_max=tenants_max)
            shares = load.shares(OWNERS, room)
            after = {owner: running[owner] + shares.get(owner, 0) for owner in OWNERS}
            given = {owner: shares.get(owner, 0) for owner in OWNERS}
            assert sum(given.values()) <= room
            for tenant in ("a", "b"):
                assert not given[tenant] or not tenant_max or after[tenant] <= tenant_max
                # Nobody is given a place while an owner with fewer turns could take it.
                assert not given[LOCAL] or after[LOCAL] - 1 <= after[tenant] or _is_full(tenant, after, load)
            assert not (given["a"] or given["b"]) or not tenants_max or after["a"] + after["b"] <= tenants_max
            # The operator is never capped, so no place stays free while they want one.
            assert sum(given.values()) == room


def _is_full(tenant: str, after: dict[str, int], load: Load) -> bool:
    own = load.tenant_max > 0 and after[tenant] >= load.tenant_max
    return own or (load.tenants_max > 0 and after["a"] + after["b"] >= load.tenants_max)


@pytest.mark.parametrize(("total", "tenants_max"), [(0, 1), (1, 1), (3, 3), (4, 3), (8, 6), (256, 192)])
def test_a_quarter_of_the_places_is_the_operators(total: int, tenants_max: int) -> None:
    load = Places(total=total, tenant_max=2).load(["a", LOCAL, "a"])
    assert (dict(load.running), load.tenant_max, load.tenants_max) == ({"a": 2, LOCAL: 1}, 2, tenants_max)


@pytest.mark.parametrize(
    ("round_s", "core_share", "busy"),
    [
        (0.0, 0.0, False),
        (admission.ROUND_MAX_S, 0.0, False),
        (admission.ROUND_MAX_S * 1.01, 0.0, True),
        (0.0, admission.CORE_SHARE_MAX * 0.99, False),
        (0.0, admission.CORE_SHARE_MAX * 1.01, True),
    ],
)
def test_a_process_is_busy_by_its_rounds_or_by_its_processor_time(round_s: float, core_share: float, busy: bool) -> None:
    pressure = Pressure(measured_s=100, cpu_s=10).after(round_s, 101, 10 + core_share)
    assert (pressure.is_busy, pressure.measured_s, pressure.cpu_s) == (busy, 101, 10 + core_share)


def test_processor_time_counts_until_it_is_measured_again() -> None:
    busy = Pressure(measured_s=100, cpu_s=10).after(0, 101, 11)
    soon = busy.after(0, 101 + admission.SHARE_OVER_S / 2, 11)
    assert (soon.is_busy, soon.measured_s, soon.cpu_s) == (True, 101, 11)
    assert not soon.after(0, 101 + admission.SHARE_OVER_S * 1.01, 11).is_busy


@pytest.mark.parametrize(
    ("busy", "since_s", "count"),
    [(False, 0, admission.DETACHED_AT_ONCE), (True, 0, 0), (True, admission.BUSY_PAUSE_S, 1), (True, 9, 1)],
)
def test_detached_turns_begin_a_few_at_a_time_and_one_by_one_while_the_process_is_busy(
    busy: bool, since_s: float, count: int
) -> None:
    assert Pressure(is_busy=busy).detached_max(since_s) == count


def suspect(name: str = "one", attempt: int = 3) -> Turn:
    return Turn(
        id=TurnId(name),
        session_id=SessionId("ses"),
        ordinal=1,
        mode=Mode.CONVERSATION,
        delivers_later=False,
        accepted_at=0,
        attempt=attempt,
    )


@pytest.mark.parametrize("attempt", range(2, 8))
def test_a_suspect_waits_for_an_empty_node_but_not_for_ever(attempt: int) -> None:
    turn, limit_ms = suspect(attempt=attempt), alone_ms(attempt)
    waiting = Isolation().wait(turn, 1_000)
    assert waiting.wait(turn, 9_000) == waiting, "the time counts from when it was first seen"
    for working, waited_ms in product((0, 1, 5), (0, limit_ms - 1, limit_ms, limit_ms + 1)):
        assert waiting.may_begin(working, 1_000 + waited_ms) == (working == 0 or waited_ms >= limit_ms)
    other = waiting.wait(suspect("two", attempt), 5_000)
    assert not other.may_begin(1, 5_000 + limit_ms - 1)


@pytest.mark.parametrize("attempt", range(2, 8))
def test_nothing_begins_beside_a_suspect_while_it_works_and_its_time_is_not_over(attempt: int) -> None:
    turn, limit_ms = suspect(attempt=attempt), alone_ms(attempt)
    alone = Isolation().wait(turn, 0).begin(1_000)
    for working, now_ms in product((set[TurnId](), {turn.id}, {TurnId("other")}), (1_000, 999 + limit_ms, 1_000 + limit_ms)):
        assert alone.holds(working, now_ms) == (turn.id in working and now_ms < 1_000 + limit_ms)
    assert not alone.may_begin(0, 1_000)
    assert not Isolation().holds({turn.id}, 0)
    assert Isolation().begin(0) == Isolation()
