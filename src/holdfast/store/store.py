"""Every aggregate on one database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.core.quotas import Quota
from holdfast.core.redaction import Redaction
from holdfast.store.access import KeyStore, LoginStore, SecretStore
from holdfast.store.catalog import Catalog
from holdfast.store.channels import ChannelStore
from holdfast.store.continuations import ContinuationStore
from holdfast.store.database import Database
from holdfast.store.deliveries import DeliveryStore
from holdfast.store.intake import Intake
from holdfast.store.jobs import JobStore
from holdfast.store.journal import JournalStore
from holdfast.store.masked import MaskedDatabase
from holdfast.store.memories import MemoryStore
from holdfast.store.news import NewsStore
from holdfast.store.nodes import NodeStore
from holdfast.store.passages import PassageStore
from holdfast.store.people import PeopleStore
from holdfast.store.processes import ProcessStore
from holdfast.store.questions import QuestionStore
from holdfast.store.recoveries import RecoveryStore
from holdfast.store.retention import DAY_MS, DEDUPE_DAYS, FILE_DAYS, enforce
from holdfast.store.segments import SegmentStore
from holdfast.store.sessions import SessionStore
from holdfast.store.settlement import Settlement
from holdfast.store.showing import CardStore, KeptFileStore, StatusLineStore
from holdfast.store.space import give_back
from holdfast.store.spending import SpendingStore
from holdfast.store.steering import SteeringStore
from holdfast.store.turns import TurnStore
from holdfast.store.webhooks import WebhookStore


class Store:
    """The aggregates, each with its transactions."""

    def __init__(self, database: Database, redaction: Redaction | None = None, quota: Quota | None = None) -> None:
        # Generated secrets and the settings of webhooks are stored as they are; everything else is masked.
        self.secrets = SecretStore(database)
        self.webhooks = WebhookStore(database)
        # Masking could damage a file; it is no text.
        self.kept_files = KeptFileStore(database)
        if redaction:
            database = MaskedDatabase(database, redaction)
        self.database = database
        self.wakes = database.wakes
        self.sessions = SessionStore(database, quota)
        self.continuations = ContinuationStore(database, quota)
        self.passages = PassageStore(database)
        self.intake = Intake(database, quota)
        self.turns = TurnStore(database)
        self.steering = SteeringStore(database)
        self.settlement = Settlement(database)
        self.journal = JournalStore(database)
        self.questions = QuestionStore(database)
        self.processes = ProcessStore(database)
        self.spending = SpendingStore(database)
        self.memories = MemoryStore(database)
        self.deliveries = DeliveryStore(database)
        self.status_lines = StatusLineStore(database)
        self.cards = CardStore(database)
        self.segments = SegmentStore(database)
        self.nodes = NodeStore(database)
        self.news = NewsStore(database)
        self.recoveries = RecoveryStore(database)
        self.jobs = JobStore(database, quota)
        self.catalog = Catalog(database)
        self.keys = KeyStore(database)
        self.logins = LoginStore(database)
        self.channels = ChannelStore(database)
        self.people = PeopleStore(database)

    async def enforce_retention(self, one_shot_days: Mapping[str, int], now_ms: int) -> int:
        """Delete what has outlived its retention; returns how many sessions."""
        pruned = await enforce(
            self.sessions, self.jobs, self.nodes, self.spending, self.logins, self.deliveries, one_shot_days, now_ms
        )
        await self.channels.forget_messages(now_ms - DEDUPE_DAYS * DAY_MS)
        await self.people.forget(now_ms)
        await self.kept_files.forget(now_ms - FILE_DAYS * DAY_MS)
        return pruned.sessions

    @property
    def damage(self) -> Sequence[str]:
        """The damage that was found so far."""
        return self.database.damage

    async def inspect(self) -> Sequence[str]:
        """Read the whole store in the background and return the damage."""
        return await self.database.inspect()

    async def give_back(self) -> int:
        """Give some free space back to the disk; returns how much there is still to give, in pages."""
        return await give_back(self.database)

    async def close(self) -> None:
        await self.database.close()
