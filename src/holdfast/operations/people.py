"""People of chat channels: who is let in, as what, and who asks to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.config import ChatSettings
from holdfast.core.keys import ADMIN
from holdfast.core.people import Choice, Pairing, Person, Role, owner_of, person_id
from holdfast.errors import NotFound, Rejected
from holdfast.ids import PairingId
from holdfast.operations.caller import Caller
from holdfast.operations.operation import Retry, operation
from holdfast.operations.pages import Page
from holdfast.operations.projection import project

if TYPE_CHECKING:
    # A command that asks a running gateway does not import it.
    from holdfast.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView:
    """A person who is let in.  One without a time of approval is named by `allow` of the account."""

    person: str
    account: str
    user_id: str
    user_name: str
    role: Role
    owner: str
    approved_at: int | None
    last_seen_at: int | None

    @classmethod
    def of(cls, person: Person) -> PersonView:
        return project(cls, person, person=person.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """Another role for a person."""

    role: Role


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedPerson:
    """A person who is no longer let in."""

    revoked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingView:
    """A person who asks to be let in.  The code is known to that person alone."""

    id: PairingId
    account: str
    user_id: str
    user_name: str
    asked_at: int
    expires_at: int
    message: str

    @classmethod
    def of(cls, pairing: Pairing) -> PairingView:
        return project(cls, pairing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """As what a person is let in: a guest has tools that use their own data only, a trusted person all tools, and the
    operator may decide everything."""

    role: Role = Role.GUEST


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPairing:
    """How a request was settled.  `new` is false where it had been settled the same way before."""

    id: PairingId
    person: str
    choice: Choice
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """The people whom accounts let in.  `accounts` are those of the configuration."""

    store: Store
    accounts: Mapping[str, ChatSettings]

    @operation("GET /api/people", "List the people who are let in", scope=ADMIN, offline=True)
    async def list(self) -> Page[PersonView]:
        everybody = [self._as_configured(each) for each in await self.store.people.list()]
        known = {(each.account, each.user_id) for each in everybody}
        unseen = [
            _of_allow(account, user_id)
            for account, settings in self.accounts.items()
            for user_id in settings.allow
            if (account, user_id) not in known
        ]
        let_in = [each for each in everybody if each.approved_at is not None or self._allows(each)]
        return Page(items=[PersonView.of(each) for each in (*let_in, *unseen)])

    @operation("PATCH /api/people/{id:path}", "Give a person another role", scope=ADMIN, retry=Retry.ALWAYS)
    async def change(self, person: str, change: RoleChange) -> PersonView:
        """Give a person another role.  Their next turn has it.  Raises `Rejected` for a person of the configuration."""
        self._refuse_configured(person)
        return PersonView.of(await self.store.people.change(person, change.role))

    @operation("DELETE /api/people/{id:path}", "Let a person in no longer", scope=ADMIN, retry=Retry.ALWAYS)
    async def revoke(self, person: str) -> RevokedPerson:
        """Let a person in no longer.  They may ask again.  Raises `Rejected` for a person of the configuration."""
        self._refuse_configured(person)
        return RevokedPerson(revoked=(await self.store.people.revoke(person)).id)

    def _refuse_configured(self, person: str) -> None:
        account, _, user_id = person.partition(":")
        if account in self.accounts and user_id in self.accounts[account].allow:
            raise Rejected(f"{person} is named by channels.{account}.allow of the configuration; change it there")

    def _allows(self, person: Person) -> bool:
        return person.account in self.accounts and person.user_id in self.accounts[person.account].allow

    def _as_configured(self, person: Person) -> Person:
        """Return a person as the next message finds them: `allow` goes before what was approved."""
        return _of_allow(person.account, person.user_id, person) if self._allows(person) else person


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairings:
    """The requests of people who are not let in yet.  A request is named by its id or its code."""

    store: Store
    caller: Caller
    clock: Clock

    @operation("GET /api/pairings", "List the people who ask to be let in", scope=ADMIN, offline=True)
    async def list(self) -> Page[PairingView]:
        now = self.clock.now_ms()
        return Page(items=[PairingView.of(each) for each in await self.store.people.pairings() if each.is_open(now)])

    @operation(
        "POST /api/pairings/{id}/approve",
        "Let a person in by the id or the code of the request; what they wrote is then answered",
        scope=ADMIN,
        retry=Retry.ALWAYS,
        refuses=(409,),
    )
    async def approve(self, name: str, approval: Approval) -> SettledPairing:
        """Let a person in.  The same decision may be repeated.  Raises `NotFound`, `Stale` and `Rejected`."""
        choice = Choice.ME if approval.role is Role.OPERATOR else Choice(approval.role.value)
        return await self._decide(name, choice)

    @operation(
        "POST /api/pairings/{id}/deny",
        "Refuse a person by the id or the code of the request; they get no new code for a week",
        scope=ADMIN,
        retry=Retry.ALWAYS,
        refuses=(409,),
    )
    async def deny(self, name: str) -> SettledPairing:
        """Refuse a person.  The same decision may be repeated.  Raises `NotFound`, `Stale` and `Rejected`."""
        return await self._decide(name, Choice.DENY)

    async def _decide(self, name: str, choice: Choice) -> SettledPairing:
        pairing = await self._find(name)
        settled = await self.store.people.decide(pairing.id, choice, self.caller.owner, self.clock.now_ms())
        person = person_id(pairing.account, pairing.user_id)
        return SettledPairing(id=pairing.id, person=person, choice=choice, new=settled.new)

    async def _find(self, name: str) -> Pairing:
        for each in await self.store.people.pairings():
            if each.id == name or each.is_asked_by(name):
                return each
        raise NotFound("there is no request with this id or code; see `holdfast pair list`")


def _of_allow(account: str, user_id: str, seen: Person | None = None) -> Person:
    return Person(
        account=account,
        user_id=user_id,
        user_name=seen.user_name if seen else "",
        role=Role.OPERATOR,
        owner=owner_of(Role.OPERATOR, account, user_id),
        last_seen_at=seen.last_seen_at if seen else None,
    )
