"""The hosts that tools may reach: those in the configuration, and those that a person has approved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.agent.context_files import IsGranted
from holdfast.agent.tools.port import CallContext
from holdfast.clock import Clock
from holdfast.core.questions import APPROVAL_CHOICES, About, Question, fingerprint
from holdfast.core.turns import Mode
from holdfast.errors import Rejected
from holdfast.sandbox import policy

APPROVAL_EXPIRES_MS = 24 * 3_600_000


class Hosts:
    """Finds hosts that are not approved yet, and asks for them.  An approval of a host is valid for every tool."""

    def __init__(self, is_granted: IsGranted, clock: Clock, listed: Sequence[str] = ()) -> None:
        self._is_granted = is_granted
        self._clock = clock
        self._listed = frozenset(map(as_listed, listed))

    async def new(self, hosts: Sequence[str], context: CallContext) -> list[str]:
        """Return the hosts that are approved neither for this session nor for always."""
        unlisted = [each for each in dict.fromkeys(hosts) if not self._is_listed(each)]
        return [
            each
            for each in unlisted
            if not await self._is_granted(context.session.owner, context.session.id, fingerprint(host=each))
        ]

    def _is_listed(self, host: str) -> bool:
        return host in self._listed or any(host.endswith(each[1:]) for each in self._listed if each.startswith("*."))

    async def ask_after_reading(self, host: str, wish: str, context: CallContext) -> Question | None:
        """Return the question whether a turn that has read private data may reach a host; None if it may.

        Raises `Rejected` if no person can be asked.
        """
        if not context.private or not await self.new([host], context):
            return None
        read = ", ".join(context.private)
        why = f"this conversation has read private things ({read}), and {host} could learn of them"
        return self.question([host], wish, why, context)

    def question(
        self,
        hosts: Sequence[str],
        wish: str,
        why: str,
        context: CallContext,
        detail: Mapping[str, object] | None = None,
        expires_ms: int = APPROVAL_EXPIRES_MS,
    ) -> Question:
        """Return a question.  An approval for once is for exactly this wish; a longer one is for each host."""
        if context.turn.mode is Mode.SYNCHRONOUS:
            raise Rejected(
                f"{', '.join(hosts)} cannot be reached: {why}, and nobody can be asked here; do without it, or say that it "
                "is needed"
            )
        once = fingerprint(wish=wish, hosts=list(hosts))
        return Question(
            id=f"approve:{context.call_id}:{once[:16]}",
            text=f"{wish}\n\nIt is asked because {why}.",
            about=About.APPROVAL,
            choices=APPROVAL_CHOICES,
            fingerprint=" ".join(fingerprint(host=each) for each in hosts),
            expires_at=self._clock.now_ms() + expires_ms,
            detail={"hosts": list(hosts), **(detail or {})},
        )


def named(text: str) -> str:
    """Return a host in the form that is compared.  Raises `Rejected` if it is not a host."""
    try:
        return policy.host(text)
    except ValueError as error:
        raise Rejected(str(error)) from error


def as_listed(text: str) -> str:
    """Return a host of the settings, which may begin with `*.`, in the form that is compared.  Raises `Rejected`."""
    domain = text.strip().removeprefix("*.")
    return f"*.{named(domain)}" if domain != text.strip() else named(text)
