"""Answers questions that have expired with just that, so that their turns go on and say so."""

from __future__ import annotations

import logging

from holdfast.clock import Clock
from holdfast.core.events import ApprovalAnswered
from holdfast.core.questions import EXPIRED, AskedQuestion
from holdfast.engine.tuning import Tuning
from holdfast.errors import Rejected, Stale, Unavailable
from holdfast.store.store import Store

log = logging.getLogger(__name__)


class Expiry:
    """Looks for questions past their time."""

    def __init__(self, store: Store, tuning: Tuning, clock: Clock) -> None:
        self._store = store
        self._tuning = tuning
        self._clock = clock

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            try:
                for asked in await self._store.questions.expired(self._clock.now_ms()):
                    await self._expire(asked)
            except Unavailable as error:
                log.warning("cannot look for questions that have expired: %s", error)
            await self._clock.sleep_ms(self._tuning.expiry_ms)

    async def _expire(self, asked: AskedQuestion) -> None:
        given = ApprovalAnswered(question_id=asked.question.id, text=EXPIRED)
        try:
            await self._store.turns.answer(asked.turn_id, given, self._clock.now_ms())
        except (Rejected, Stale) as moved:
            # Answered, cancelled or deleted at the last moment.
            log.info("question %s of turn %s did not expire: %s", asked.question.id, asked.turn_id, moved)
