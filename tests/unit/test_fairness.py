"""How places are shared between owners."""

from __future__ import annotations

import pytest

from holdfast.core.fairness import Load


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
