"""Trust: on whose behalf a turn works, and so how much of what is the operator's it may know and use."""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum

from holdfast.core.keys import LOCAL
from holdfast.core.sessions import Session

# Channels whose words come from strangers.
UNTRUSTED = frozenset({"webhook"})


class Trust(StrEnum):
    """How far a turn is trusted."""

    # A signature authenticates the sender, never the content.
    STRANGER = "stranger"
    # A person or program with a key, who reaches only what they own.
    TENANT = "tenant"
    OPERATOR = "operator"


def trusts(owner: str, owners: Container[str] = ()) -> bool:
    """Return whether an owner may use what is the operator's; `owners` are those whom the operator trusts with it."""
    return owner == LOCAL or owner in owners


def trust_in(session: Session, owners: Container[str] = ()) -> Trust:
    """Return how far the turns of a session are trusted; `owners` are those that the operator trusts like themselves."""
    if session.channel in UNTRUSTED:
        return Trust.STRANGER
    return Trust.OPERATOR if trusts(session.owner, owners) else Trust.TENANT
