"""People: whom the operator has let in, and who asks to be.  The intake of a chat asks inside its own transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from holdfast.core import people
from holdfast.core.chats import Place
from holdfast.core.delivery import Delivery
from holdfast.core.people import DENIED_MS, ROLES, Asked, Choice, Pairing, Person, Role, owner_of, person_id
from holdfast.errors import NotFound, Stale
from holdfast.ids import PairingId
from holdfast.store import channels, deliveries, locks, rows
from holdfast.store.channels import EVENTS_TOPIC
from holdfast.store.database import Database, Dialect, Params, Row, Run, Together, Transaction

# Woken when what a person may do changes.
TOPIC = "people"
# A person who writes often is not written down each time.
SEEN_EVERY_MS = 60_000
# A decision can be repeated for so long after the code would have expired.
KEPT_MS = 24 * 3_600_000

# So many messages of a person who asks are kept until it is decided.
HELD_MAX = 20

_PERSON = "account, user_id, user_name, role, owner, approved_at, last_seen_at"
_PAIRING = "id, account, user_id, user_name, place, code_digest, asked_at, expires_at, message, decided"
_PEOPLE = f"SELECT {_PERSON} FROM people ORDER BY account, user_name, user_id"
_GET = f"SELECT {_PERSON} FROM people WHERE person = :person"
_TRUSTED = "SELECT DISTINCT owner FROM people WHERE role = 'trusted' AND approved_at IS NOT NULL"
# Someone whom only `allow` lets in has a row without an approval, which allows nothing by itself.
_SEEN = f"""
    INSERT INTO people (person, {_PERSON})
    VALUES (:person, :account, :user_id, :user_name, 'operator', 'local', NULL, :now)
    ON CONFLICT (person) DO UPDATE SET user_name = excluded.user_name, last_seen_at = excluded.last_seen_at
     WHERE people.user_name <> excluded.user_name
        OR COALESCE(people.last_seen_at, 0) <= excluded.last_seen_at - {SEEN_EVERY_MS}
"""
_APPROVE = f"""
    INSERT INTO people (person, {_PERSON})
    VALUES (:person, :account, :user_id, :user_name, :role, :owner, :now, :asked_at)
    ON CONFLICT (person) DO UPDATE
       SET user_name = excluded.user_name, role = excluded.role, owner = excluded.owner, approved_at = excluded.approved_at
"""
_CHANGE = f"""
    UPDATE people SET role = :role, owner = :owner WHERE person = :person AND approved_at IS NOT NULL RETURNING {_PERSON}
"""
_REVOKE = f"UPDATE people SET approved_at = NULL WHERE person = :person RETURNING {_PERSON}"
_UNPAIR = "DELETE FROM pairings WHERE account = :account AND user_id = :user_id"

_PAIRINGS = f"SELECT {_PAIRING} FROM pairings ORDER BY asked_at, id"
_PAIRING_OF = f"SELECT {_PAIRING} FROM pairings WHERE account = :account AND user_id = :user_id"
_PAIRING_BY_ID = f"SELECT {_PAIRING} FROM pairings WHERE id = :id"
_OPEN = "SELECT COUNT(*) FROM pairings WHERE account = :account AND decided IS NULL AND expires_at > :now"
_ASK = f"""
    INSERT INTO pairings ({_PAIRING})
    VALUES (:id, :account, :user_id, :user_name, :place, :code_digest, :asked_at, :expires_at, :message, NULL)
"""
_DECIDE = """
    UPDATE pairings SET decided = :decided, decided_by = :by, decided_at = :now, expires_at = :expires_at
     WHERE id = :id AND decided IS NULL RETURNING id
"""
# Messages of a person who is not let in yet wait for the decision, and are handled or deleted with it.
_RELEASE = "UPDATE chat_inbox SET holder = NULL WHERE holder = :id"
_DROP = "DELETE FROM chat_inbox WHERE holder = :id"
_HAND_OVER = "UPDATE chat_inbox SET holder = :id WHERE holder = :earlier"
# It counts only while nothing is decided, and is held until what is written beside it is there.
_HOLD_OPEN = """
    UPDATE pairings SET message = message WHERE account = :account AND user_id = :user_id AND decided IS NULL RETURNING id
"""
_COUNT_HELD = "SELECT COUNT(*) FROM chat_inbox WHERE holder = :holder"
_OLD = "SELECT id FROM pairings WHERE expires_at <= :before ORDER BY expires_at LIMIT 500"
_FORGET = "DELETE FROM pairings WHERE id = :id AND expires_at <= :before"

_place = msgspec.json.Decoder(Place).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What was decided about a person who asked.  It is not `new` where it had been decided the same way before."""

    pairing: Pairing
    choice: Choice
    new: bool


class PeopleStore:
    """People and their requests to be let in."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self) -> list[Person]:
        """Return everybody who was ever let in or named by `allow`; those who were revoked have no time of approval."""
        return [_person(row) for row in await self._database.read(lambda: _run(_PEOPLE, {}))]

    async def get(self, person: str) -> Person:
        """Return one person.  Raises `NotFound`."""
        return _only(await self._database.read(lambda: _run(_GET, {"person": person})), person)

    async def trusted(self) -> frozenset[str]:
        """Return the owners whom the operator trusts with the tools of this machine."""
        return frozenset(owner for (owner,) in await self._database.read(lambda: _run(_TRUSTED, {})))

    async def change(self, person: str, role: Role) -> Person:
        """Give a person another role.  Raises `NotFound` for one who is not let in."""
        before = await self.get(person)
        params: Params = {"person": person, "role": role.value, "owner": owner_of(role, before.account, before.user_id)}
        return _only(await self._database.write(lambda: _run(_CHANGE, params), wakes=lambda _: (TOPIC,)), person)

    async def revoke(self, person: str) -> Person:
        """Let a person in no longer.  They may ask again.  Raises `NotFound` for a person who was never known."""
        return _only(await self._database.write(lambda: _revoke(person), wakes=lambda _: (TOPIC,)), person)

    async def pairings(self) -> list[Pairing]:
        """Return requests in the order in which they came, with those that were settled or have expired lately."""
        return [_pairing(row) for row in await self._database.read(lambda: _run(_PAIRINGS, {}))]

    async def decide(self, pairing_id: PairingId, choice: Choice, by: str, now_ms: int) -> Settled:
        """Let a person in, or not.  The same decision may be repeated.  `by` is the person who decided.

        Raises `NotFound`, `Stale` for a request that was decided otherwise, and `Rejected` for one that has expired.
        """
        return await self._database.write(
            lambda: decide(pairing_id, choice, by, now_ms), wakes=lambda _: (TOPIC, EVENTS_TOPIC)
        )

    async def find(self, account: str, user_id: str) -> Person | None:
        """Return a person whom an account knows."""
        return await self._database.read(lambda: find(account, user_id))

    async def note(self, account: str, user_id: str, user_name: str, now_ms: int) -> None:
        """Note when a person who was let in wrote, and what they are called now."""
        await self._database.write(lambda: seen(account, user_id, user_name, now_ms))

    async def let_wait(self, pairing: Pairing, numbers: Sequence[int], notices: Sequence[Delivery]) -> Asked:
        """Let a stranger ask to be let in; what they wrote waits for the decision.

        The notices are sent only with a new code.  Raises `Stale` where an event was handled before.
        """
        dialect = self._database.dialect
        return await self._database.write(
            lambda: _let_wait(dialect, pairing, numbers, notices), wakes=lambda _: (TOPIC, "deliveries")
        )

    async def hand_on(self, account: str, user_ids: Sequence[str]) -> None:
        """Let go on what people wrote who asked to be let in before the settings of the account named them."""
        await self._database.write(lambda: _hand_on(account, user_ids), wakes=lambda _: (TOPIC, EVENTS_TOPIC))

    async def forget(self, now_ms: int) -> int:
        """Delete the requests that expired long ago; returns how many."""
        before = now_ms - KEPT_MS
        return await self._database.write(lambda: _forget(before))


def find(account: str, user_id: str) -> Transaction[Person | None]:
    """Return a person whom an account knows."""
    found = yield Run(_GET, {"person": person_id(account, user_id)})
    return _person(found[0]) if found else None


def seen(account: str, user_id: str, user_name: str, now_ms: int) -> Transaction[None]:
    """Note when a person who was let in wrote, and what they are called now."""
    params: Params = {"account": account, "user_id": user_id, "user_name": user_name, "now": now_ms}
    yield Run(_SEEN, {"person": person_id(account, user_id), **params})


def ask(pairing: Pairing) -> Transaction[Asked]:
    """Let a stranger ask to be let in, with a code whose digest is in `pairing`; the code counts only if it is `NEW`."""
    of: Params = {"account": pairing.account, "user_id": pairing.user_id, "now": pairing.asked_at}
    earlier, ((open_now,),) = yield Together([Run(_PAIRING_OF, of), Run(_OPEN, of)])
    before = _pairing(earlier[0]) if earlier else None
    asked = people.may_ask(before, open_now, pairing.asked_at)
    if asked is Asked.NEW:
        yield Run(_UNPAIR, of)
        yield Run(_ASK, _params(pairing))
        if before:
            yield Run(_HAND_OVER, {"id": pairing.id, "earlier": before.id})
    return asked


def _let_wait(dialect: Dialect, pairing: Pairing, numbers: Sequence[int], notices: Sequence[Delivery]) -> Transaction[Asked]:
    yield locks.UNNAMED
    asked = yield from ask(pairing)
    if asked is Asked.NEW:
        yield from deliveries.insert_notice(notices)
    elif asked is not Asked.OPEN:
        yield from channels.remove(dialect, pairing.account, numbers)
        return asked
    found = yield Run(_HOLD_OPEN, {"account": pairing.account, "user_id": pairing.user_id})
    if not found:
        raise Stale(f"the request of {pairing.user_id} was decided meanwhile")
    ((holder,),) = found
    ((held,),) = yield Run(_COUNT_HELD, {"holder": holder})
    if held + len(numbers) > HELD_MAX:
        yield from channels.remove(dialect, pairing.account, numbers)
    else:
        yield from channels.hold(dialect, pairing.account, numbers, holder)
    return asked


def decide(pairing_id: PairingId, choice: Choice, by: str, now_ms: int) -> Transaction[Settled]:
    """Let a person in, or not.  See `PeopleStore.decide`."""
    found = yield Run(_PAIRING_BY_ID, {"id": pairing_id})
    if not found:
        raise NotFound(f"there is no request {pairing_id}")
    pairing = _pairing(found[0])
    if not people.decide(pairing, choice, now_ms):
        return Settled(pairing=pairing, choice=choice, new=False)
    expires_at = now_ms + DENIED_MS if choice is Choice.DENY else pairing.expires_at
    settled: Params = {"id": pairing_id, "decided": choice.value, "by": by, "now": now_ms, "expires_at": expires_at}
    if not (yield Run(_DECIDE, settled)):
        raise Stale(f"the request {pairing_id} has just been settled; look again")
    if choice is Choice.DENY:
        yield Run(_DROP, {"id": pairing_id})
    else:
        yield Run(_APPROVE, _approved(pairing, ROLES[choice], now_ms))
        yield Run(_RELEASE, {"id": pairing_id})
    return Settled(pairing=pairing, choice=choice, new=True)


def _approved(pairing: Pairing, role: Role, now_ms: int) -> Params:
    return {
        "person": person_id(pairing.account, pairing.user_id),
        "account": pairing.account,
        "user_id": pairing.user_id,
        "user_name": pairing.user_name,
        "role": role.value,
        "owner": owner_of(role, pairing.account, pairing.user_id),
        "now": now_ms,
        "asked_at": pairing.asked_at,
    }


def _revoke(person: str) -> Transaction[list[Row]]:
    revoked = yield Run(_REVOKE, {"person": person})
    for account, user_id, *_ in revoked:
        # Otherwise the person would not be given a new code before the old one expires.
        yield from _unpair(account, user_id, _DROP)
    return revoked


def _hand_on(account: str, user_ids: Sequence[str]) -> Transaction[None]:
    yield locks.UNNAMED
    for user_id in user_ids:
        yield from _unpair(account, user_id, _RELEASE)


def _unpair(account: str, user_id: str, held: str) -> Transaction[None]:
    """Delete the request of a person; `held` is what becomes of what they wrote."""
    of: Params = {"account": account, "user_id": user_id}
    for id_, *_ in (yield Run(_PAIRING_OF, of)):
        yield Run(held, {"id": id_})
    yield Run(_UNPAIR, of)


def _forget(before: int) -> Transaction[int]:
    old = yield Run(_OLD, {"before": before})
    for (pairing_id,) in old:
        yield Run(_FORGET, {"id": pairing_id, "before": before})
        yield Run(_DROP, {"id": pairing_id})
    return len(old)


def _run(sql: str, params: Params) -> Transaction[list[Row]]:
    return (yield Run(sql, params))


def _only(found: Sequence[Row], person: str) -> Person:
    if not found:
        raise NotFound(f"there is no person {person!r}; see `holdfast pair list`")
    return _person(found[0])


def _person(row: Row) -> Person:
    account, user_id, user_name, role, owner, approved_at, last_seen_at = row
    return Person(
        account=account,
        user_id=user_id,
        user_name=user_name,
        role=Role(role),
        owner=owner,
        approved_at=approved_at,
        last_seen_at=last_seen_at,
    )


def _params(pairing: Pairing) -> Params:
    return {
        "id": pairing.id,
        "account": pairing.account,
        "user_id": pairing.user_id,
        "user_name": pairing.user_name,
        "place": rows.encode(pairing.place),
        "code_digest": pairing.code_digest,
        "asked_at": pairing.asked_at,
        "expires_at": pairing.expires_at,
        "message": pairing.message,
    }


def _pairing(row: Row) -> Pairing:
    id_, account, user_id, user_name, place, code_digest, asked_at, expires_at, message, decided = row
    return Pairing(
        id=id_,
        account=account,
        user_id=user_id,
        user_name=user_name,
        place=_place(place),
        code_digest=code_digest,
        asked_at=asked_at,
        expires_at=expires_at,
        message=message,
        decided=Choice(decided) if decided else None,
    )
