"""Where the answer to a delivery goes, when its payload has a say in it."""

from __future__ import annotations

import pytest

from holdfast.channels.webhook.payload import Payload
from holdfast.channels.webhook.route import NoTarget, ready
from holdfast.config import RouteConfig
from holdfast.targets import Targets
from tests.engine.world import RecordingCarrier

SECRET = "a secret of some length"


def address(place: object) -> str | None:
    """Ask a carrier that takes anything where an answer goes."""
    route = ready("r", RouteConfig(secret=SECRET, deliver="chat:{place}"), SECRET, Targets({"chat": RecordingCarrier()}))
    return route.address(Payload(data={"place": place}, raw="{}"))


def test_a_payload_names_the_place_where_the_operator_lets_it() -> None:
    assert address("team/room-1.a") == "chat:team/room-1.a"
    assert address(42) == "chat:42"


@pytest.mark.parametrize("place", ["a b", "a#2", "a:b", "@all", "..", "a/../b", "", "a\n", "ä", "x" * 201, {"a": 1}, [1]])
def test_a_payload_names_no_place_of_its_own(place: object) -> None:
    """SECURITY: a signature authenticates the sender, never the content."""
    with pytest.raises(NoTarget):
        address(place)
