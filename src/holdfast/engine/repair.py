"""Repair: when a session is read, what is still missing of it is looked for once more."""

from __future__ import annotations

import logging
from typing import assert_never

from holdfast.clock import Clock
from holdfast.core.recovery import LookVerdict, PendingRecovery, Sight, after_look, is_too_old
from holdfast.errors import Unavailable
from holdfast.ids import SessionId
from holdfast.store.recoveries import RecoveryStore

log = logging.getLogger(__name__)


class Repair:
    """Looks once at a time per session; across nodes the store decides whose look counts."""

    def __init__(self, recoveries: RecoveryStore, clock: Clock) -> None:
        self._recoveries = recoveries
        self._clock = clock
        self._looking: set[SessionId] = set()

    async def retry(self, session_id: SessionId) -> bool:
        """Look once for what is missing of a session; returns whether a search came to its end.

        While another reader looks this returns at once, and it never fails: a look that was not possible is not counted.
        """
        if session_id in self._looking:
            return False
        self._looking.add(session_id)
        try:
            ended = [await self._look(pending) for pending in await self._recoveries.of_session(session_id)]
        except Unavailable as error:
            log.info("cannot look for what is missing of session %s: %s", session_id, error)
            return False
        finally:
            self._looking.discard(session_id)
        return any(ended)

    async def _look(self, pending: PendingRecovery) -> bool:
        now = self._clock.now_ms()
        age = now - pending.since
        # What is too old is not looked for, so what would be seen makes no difference.
        sight = Sight.SEALED if is_too_old(age) else await self._recoveries.sight(pending)
        verdict = after_look(sight, pending.tries, age)
        match verdict:
            case LookVerdict.RESOLVE | LookVerdict.GIVE_UP:
                return await self._recoveries.resolve(pending, now)
            case LookVerdict.CHARGE:
                await self._recoveries.charge(pending)
                return False
            case LookVerdict.WAIT:
                return False
            case _:
                assert_never(verdict)
