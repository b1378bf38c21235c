"""People and their requests to be let in, as the store keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.core.chats import Place
from holdfast.core.people import (
    DENIED_MS,
    OPEN_MAX,
    PAIRING_MS,
    Asked,
    Choice,
    Pairing,
    Person,
    Role,
    code_digest,
)
from holdfast.errors import NotFound, Rejected, Stale
from holdfast.ids import PairingId, new_pairing_code, new_pairing_id
from holdfast.store import people
from holdfast.store.people import KEPT_MS, SEEN_EVERY_MS
from holdfast.store.trusted import TrustedOwners
from tests.conformance.scenes import MINUTE, Scene
from tests.conformance.test_wakes import listen


def request(scene: Scene, user: str = "7", account: str = "telegram", code: str = "ABCD2345") -> Pairing:
    id_ = new_pairing_id(scene.now)
    return Pairing(
        id=id_,
        account=account,
        user_id=user,
        user_name=f"User {user}",
        place=Place(chat_id=user, thread_id="t"),
        code_digest=code_digest(id_, code),
        asked_at=scene.now,
        expires_at=scene.now + PAIRING_MS,
        message="let me in",
    )


async def ask(scene: Scene, user: str = "7", account: str = "telegram") -> tuple[Asked, Pairing]:
    made = request(scene, user, account)
    return await scene.store.database.write(lambda: people.ask(made)), made


async def asked(scene: Scene, user: str = "7", account: str = "telegram") -> Pairing:
    outcome, made = await ask(scene, user, account)
    assert outcome is Asked.NEW
    return made


async def approved(scene: Scene, user: str = "7", choice: Choice = Choice.GUEST) -> Pairing:
    made = await asked(scene, user)
    await scene.store.people.decide(made.id, choice, "local", scene.now)
    return made


async def known(scene: Scene, user: str = "7") -> Person | None:
    return await scene.store.database.read(lambda: people.find("telegram", user))


async def test_a_request_is_kept_with_everything_but_its_code(scene: Scene) -> None:
    made = await asked(scene)
    assert await scene.store.people.pairings() == [made]
    rows = await scene.sql("SELECT * FROM pairings")
    assert "ABCD2345" not in str(rows)
    assert await known(scene) is None


async def test_a_person_who_asks_again_keeps_the_first_code(scene: Scene) -> None:
    made = await asked(scene)
    scene.now += PAIRING_MS - 1
    assert (await ask(scene))[0] is Asked.OPEN
    assert await scene.store.people.pairings() == [made]


async def test_an_expired_request_is_replaced(scene: Scene) -> None:
    await asked(scene)
    scene.now += PAIRING_MS
    made = await asked(scene)
    assert await scene.store.people.pairings() == [made]


async def test_each_account_has_three_open_requests_at_most(scene: Scene) -> None:
    for number in range(OPEN_MAX):
        await asked(scene, str(number))
    assert (await ask(scene, "more"))[0] is Asked.FULL
    await asked(scene, "more", "work")
    scene.now += PAIRING_MS
    await asked(scene, "more")


@pytest.mark.parametrize(
    ("choice", "role", "owner"),
    [
        (Choice.ME, Role.OPERATOR, "local"),
        (Choice.TRUSTED, Role.TRUSTED, "telegram:7"),
        (Choice.GUEST, Role.GUEST, "telegram:7"),
    ],
)
async def test_an_approved_person_is_let_in_with_their_role(scene: Scene, choice: Choice, role: Role, owner: str) -> None:
    made = await asked(scene)
    heard, _ = listen(scene.store)
    settled = await scene.store.people.decide(made.id, choice, "local", scene.now + MINUTE)
    assert (settled.new, settled.choice, settled.pairing) == (True, choice, made)
    assert "people" in heard
    expected = Person(
        account="telegram",
        user_id="7",
        user_name="User 7",
        role=role,
        owner=owner,
        approved_at=scene.now + MINUTE,
        last_seen_at=scene.now,
    )
    assert await known(scene) == expected
    assert await scene.store.people.list() == [expected]


@pytest.mark.parametrize("choice", list(Choice))
async def test_a_decision_can_be_repeated_and_not_changed(scene: Scene, choice: Choice) -> None:
    made = await asked(scene)
    await scene.store.people.decide(made.id, choice, "local", scene.now)
    before = await scene.snapshot()
    scene.now += MINUTE
    assert not (await scene.store.people.decide(made.id, choice, "local", scene.now)).new
    for other in set(Choice) - {choice}:
        with pytest.raises(Stale):
            await scene.store.people.decide(made.id, other, "local", scene.now)
    assert await scene.snapshot() == before


async def test_of_two_who_decide_at_once_one_decides(scene: Scene) -> None:
    made = await asked(scene)
    other = await scene.another_store() if scene.postgres else scene.store
    results: Sequence[object] = await asyncio.gather(
        scene.store.people.decide(made.id, Choice.GUEST, "local", scene.now),
        other.people.decide(made.id, Choice.DENY, "local", scene.now),
        return_exceptions=True,
    )
    assert sum(isinstance(each, Stale) for each in results) == 1
    ((decided,),) = await scene.sql("SELECT decided FROM pairings")
    assert (await known(scene) is None) is (decided == "deny")


async def test_a_denied_person_is_not_asked_again_for_a_week(scene: Scene) -> None:
    await approved(scene, choice=Choice.DENY)
    assert await known(scene) is None
    scene.now += DENIED_MS - 1
    assert (await ask(scene))[0] is Asked.DENIED
    scene.now += 1
    await asked(scene)


async def held(scene: Scene, holder: str, *numbers: int) -> None:
    """Let messages wait for a decision, as the intake of a chat does."""
    for number in numbers:
        await scene.sql(
            """INSERT INTO chat_inbox (account, number, key, chat_id, thread_id, event, received_at, holder)
               VALUES ('telegram', :number, :key, '7', '', '{}', 0, :holder)""",
            number=number,
            key=str(number),
            holder=holder,
        )


async def holders(scene: Scene) -> dict[int, str | None]:
    return dict(await scene.sql("SELECT number, holder FROM chat_inbox ORDER BY number"))  # pyright: ignore[reportArgumentType] - Rows of two.


@pytest.mark.parametrize("choice", [Choice.ME, Choice.TRUSTED, Choice.GUEST])
async def test_what_a_person_wrote_goes_on_as_they_are_let_in(scene: Scene, choice: Choice) -> None:
    """A1"""
    first, second = await asked(scene), await asked(scene, "8")
    await held(scene, first.id, 1, 2)
    await held(scene, second.id, 3)
    heard, _ = listen(scene.store)
    await scene.store.people.decide(first.id, choice, "local", scene.now)
    assert await holders(scene) == {1: None, 2: None, 3: second.id}
    assert "chats" in heard


async def test_what_a_denied_person_wrote_is_deleted(scene: Scene) -> None:
    first, second = await asked(scene), await asked(scene, "8")
    await held(scene, first.id, 1)
    await held(scene, second.id, 2)
    await scene.store.people.decide(first.id, Choice.DENY, "local", scene.now)
    assert await holders(scene) == {2: second.id}


async def test_what_waited_for_an_expired_request_waits_for_the_next(scene: Scene) -> None:
    first = await asked(scene)
    await held(scene, first.id, 1)
    scene.now += PAIRING_MS
    second = await asked(scene)
    assert await holders(scene) == {1: second.id}
    await scene.store.people.forget(scene.now + PAIRING_MS + KEPT_MS)
    assert await holders(scene) == {}


async def test_an_expired_request_lets_no_one_in(scene: Scene) -> None:
    made = await asked(scene)
    with pytest.raises(Rejected, match="expired"):
        await scene.store.people.decide(made.id, Choice.ME, "local", made.expires_at)
    with pytest.raises(NotFound):
        await scene.store.people.decide(PairingId("pair_none"), Choice.ME, "local", scene.now)
    assert await scene.store.people.list() == []


async def test_a_revoked_person_may_ask_again(scene: Scene) -> None:
    await approved(scene, choice=Choice.TRUSTED)
    for _ in range(2):
        assert (await scene.store.people.revoke("telegram:7")).approved_at is None
        assert await scene.store.people.trusted() == frozenset()
    again = await asked(scene)
    await scene.store.people.decide(again.id, Choice.GUEST, "local", scene.now)
    person = await known(scene)
    assert person
    assert (person.role, person.approved_at) == (Role.GUEST, scene.now)
    with pytest.raises(NotFound):
        await scene.store.people.revoke("telegram:8")


async def test_what_a_revoked_person_wrote_to_be_let_in_again_is_deleted(scene: Scene) -> None:
    await approved(scene)
    await scene.store.people.revoke("telegram:7")
    again = await asked(scene)
    await held(scene, again.id, 1)
    await scene.store.people.revoke("telegram:7")
    assert await holders(scene) == {}


async def test_trusted_owners_are_those_with_that_role_now(scene: Scene) -> None:
    """A node that caches them hears of each change."""
    heard, _ = listen(scene.store)
    for user, choice in (("1", Choice.ME), ("2", Choice.TRUSTED), ("3", Choice.GUEST)):
        await approved(scene, user, choice)
    assert await scene.store.people.trusted() == {"telegram:2"}
    heard.clear()
    await scene.store.people.change("telegram:3", Role.TRUSTED)
    await scene.store.people.change("telegram:2", Role.GUEST)
    assert await scene.store.people.trusted() == {"telegram:3"}
    assert heard == ["people", "people"]
    await scene.store.people.revoke("telegram:3")
    assert await scene.store.people.trusted() == frozenset()


async def test_a_role_and_the_owner_of_the_chats_change_together(scene: Scene) -> None:
    await approved(scene)
    person = await scene.store.people.change("telegram:7", Role.OPERATOR)
    assert (person.role, person.owner) == (Role.OPERATOR, "local")
    person = await scene.store.people.change("telegram:7", Role.TRUSTED)
    assert (person.role, person.owner) == (Role.TRUSTED, "telegram:7")
    await scene.store.people.revoke("telegram:7")
    with pytest.raises(NotFound):
        await scene.store.people.change("telegram:7", Role.OPERATOR)


async def test_being_seen_gives_no_rights(scene: Scene) -> None:
    """The operator's own accounts have a row, so that a list shows them; the configuration alone lets them in."""
    await scene.store.database.write(lambda: people.seen("telegram", "1", "Me", scene.now))
    person = await known(scene, "1")
    assert person
    assert (person.approved_at, person.last_seen_at, person.user_name) == (None, scene.now, "Me")
    with pytest.raises(NotFound):
        await scene.store.people.change("telegram:1", Role.TRUSTED)


async def test_being_seen_changes_nothing_but_the_time_and_the_name(scene: Scene) -> None:
    await approved(scene)
    for later, name, seen_at in ((1, "User 7", 0), (2, "Ann", 2), (SEEN_EVERY_MS + 2, "Ann", SEEN_EVERY_MS + 2)):
        await scene.store.database.write(
            lambda name=name, later=later: people.seen("telegram", "7", name, scene.now + later)
        )
        person = await known(scene)
        assert person
        assert (person.user_name, person.role, person.approved_at) == (name, Role.GUEST, scene.now)
        assert person.last_seen_at == scene.now + seen_at


async def test_old_requests_are_forgotten(scene: Scene) -> None:
    """W7"""
    made = await asked(scene)
    scene.now += PAIRING_MS + KEPT_MS - 1
    await scene.store.enforce_retention({}, scene.now)
    assert await scene.store.people.pairings() == [made]
    await scene.store.enforce_retention({}, scene.now + 1)
    assert await scene.store.people.pairings() == []


def test_codes_have_eight_characters_that_are_not_mistaken_for_others() -> None:
    codes = {new_pairing_code() for _ in range(200)}
    assert len(codes) == 200
    assert {len(code) for code in codes} == {8}
    assert not set("".join(codes)) & set("ILOU")


async def test_trust_given_and_taken_counts_without_a_restart(scene: Scene) -> None:
    """Also on another node, and for people of the configuration it never ends."""
    other = await scene.another_store() if scene.postgres else scene.store
    trusted = TrustedOwners(["ann"], other.people, other.wakes)
    running = asyncio.create_task(trusted.run())
    try:
        await approved(scene, choice=Choice.TRUSTED)
        await becomes(trusted, present=True)
        await scene.store.people.revoke("telegram:7")
        await becomes(trusted, present=False)
    finally:
        running.cancel()
    assert "ann" in trusted


async def becomes(trusted: TrustedOwners, *, present: bool) -> None:
    async with asyncio.timeout(10):
        while ("telegram:7" in trusted) is not present:  # noqa: ASYNC110 - Its cache tells nothing of a change.
            await asyncio.sleep(0)
