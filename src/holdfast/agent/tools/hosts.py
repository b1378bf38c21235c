"""Hosts that calls may reach: those that the operator lists, and those that a person has approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.agent.context_files import IsGranted
from holdfast.agent.tools.port import Site
from holdfast.clock import Clock
from holdfast.core import consent
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected

APPROVAL_EXPIRES_MS = 24 * 3_600_000


class Hosts:
    """Tells new hosts from approved ones, and asks for the new ones.  An approval is for the host, whichever tool asked."""

    def __init__(self, is_granted: IsGranted, clock: Clock, listed: Sequence[str] = ()) -> None:
        self._is_granted = is_granted
        self._clock = clock
        self._listed = frozenset(map(as_listed, listed))

    async def new(self, hosts: Sequence[str], site: Site) -> list[str]:
        """Return those hosts that nobody has approved for this session, or always."""
        unlisted = [each for each in dict.fromkeys(hosts) if not self._is_listed(each)]
        return [
            each
            for each in unlisted
            if not await self._is_granted(site.session.owner, site.session.id, fingerprint(host=each))
        ]

    def _is_listed(self, host: str) -> bool:
        return host in self._listed or any(host.endswith(each[1:]) for each in self._listed if each.startswith("*."))

    async def ask_after_reading(self, host: str, wish: str, site: Site) -> Question | None:
        """Return the question whether a turn that has read private things may reach a host; None where it may.

        Raises `Rejected` where nobody can be asked.
        """
        if not site.private or not await self.new([host], site):
            return None
        read = ", ".join(site.private)
        why = f"this conversation has read private things ({read}), and {host} could learn of them"
        return self.question([host], wish, why, site)

    def question(
        self,
        hosts: Sequence[str],
        wish: str,
        why: str,
        site: Site,
        detail: Mapping[str, object] | None = None,
        expires_ms: int = APPROVAL_EXPIRES_MS,
    ) -> Question:
        """Return a question: once is for exactly this wish, longer is for each of the hosts."""
        if site.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"{', '.join(hosts)} cannot be reached: {why}, and nobody can be asked here; do without it, or say that it "
                "is needed"
            )
        once = fingerprint(wish=wish, hosts=list(hosts))
        return Question(
            id=f"approve:{site.call_id}:{once[:16]}",
            text=f"{wish}\n\nIt is asked because {why}.",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=" ".join(fingerprint(host=each) for each in hosts),
            expires_at=self._clock.now_ms() + expires_ms,
            detail={"hosts": list(hosts), **(detail or {})},
        )


def named(text: str) -> str:
    """Return a host as it is compared.  Raises `Rejected` for what is none."""
    try:
        return consent.host(text)
    except ValueError as error:
        raise Rejected(str(error)) from error


def as_listed(text: str) -> str:
    """Return a host of the settings, where `*.` stands for any part before a domain.  Raises `Rejected` for what is none."""
    domain = text.strip().removeprefix("*.")
    return f"*.{named(domain)}" if domain != text.strip() else named(text)
