"""Who may write to the agent in a chat, and what they may decide."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from holdfast.core import people
from holdfast.core.chats import ChatType, Member, Place
from holdfast.core.people import (
    DENIED_MS,
    OPEN_MAX,
    PAIRING_MS,
    Admission,
    Asked,
    Choice,
    Groups,
    Pairing,
    Person,
    Role,
    Sessions,
    Verdict,
    admit,
    code_digest,
    may_ask,
    may_decide,
    owner_in,
    owner_of,
    role_of,
)
from holdfast.core.questions import About
from holdfast.errors import Rejected, Stale
from holdfast.ids import PairingId

NOW = 1_700_000_000_000
ROLES = (None, *Role)


def person(role: Role, approved_at: int | None = NOW) -> Person:
    return Person(account="telegram", user_id="7", user_name="Ann", role=role, owner="telegram:7", approved_at=approved_at)


def pairing(**changes: object) -> Pairing:
    made = Pairing(
        id=PairingId("pair_1"),
        account="telegram",
        user_id="7",
        user_name="Ann",
        place=Place(chat_id="7"),
        code_digest=code_digest(PairingId("pair_1"), "ABCD2345"),
        asked_at=NOW,
        expires_at=NOW + PAIRING_MS,
        message="hello",
    )
    return replace(made, **changes)  # pyright: ignore[reportArgumentType] - Each test names the fields of a pairing.


@pytest.mark.parametrize(
    ("chat", "addresses_bot", "groups", "allowed", "is_bot", "known"),
    list(product(ChatType, (False, True), Groups, (False, True), (False, True), [None, *product(Role, (None, NOW))])),
)
def test_a_message_is_admitted_if_its_chat_and_its_sender_are(
    chat: ChatType,
    addresses_bot: bool,
    groups: Groups,
    allowed: bool,
    is_bot: bool,
    known: tuple[Role, int | None] | None,
) -> None:
    """Every combination, against the sentences of the guide instead of the code of the rule."""
    admission = admit(
        Member(id="7", is_bot=is_bot),
        chat,
        addresses_bot=addresses_bot,
        groups=groups,
        allow=("7",) if allowed else ("8",),
        person=person(*known) if known else None,
    )
    approved = known is not None and known[1] is not None and not is_bot
    if chat is ChatType.GROUP and (groups is Groups.OFF or (groups is Groups.MENTION and not addresses_bot)):
        expected = Admission(verdict=Verdict.IGNORE)
    elif allowed:
        expected = Admission(verdict=Verdict.ADMIT, role=Role.OPERATOR)
    elif approved:
        assert known
        expected = Admission(verdict=Verdict.ADMIT, role=known[0])
    elif chat is ChatType.PRIVATE and not is_bot:
        expected = Admission(verdict=Verdict.PAIR)
    else:
        expected = Admission(verdict=Verdict.IGNORE)
    assert admission == expected


@pytest.mark.parametrize("chat", list(ChatType))
def test_a_bot_is_let_in_by_its_name_in_allow_alone(chat: ChatType) -> None:
    bot = Member(id="7", is_bot=True)
    assert role_of(bot, (), person(Role.TRUSTED)) is None
    assert role_of(bot, ("7",), None) is Role.OPERATOR
    assert admit(bot, chat, addresses_bot=True, groups=Groups.ALL, allow=(), person=None).verdict is Verdict.IGNORE


def test_allow_is_read_at_each_message_and_never_written_down() -> None:
    """A row that only `allow` has made gives no rights once the name is taken out of `allow`."""
    met = person(Role.OPERATOR, approved_at=None)
    assert role_of(Member(id="7"), ("7",), met) is Role.OPERATOR
    assert role_of(Member(id="7"), (), met) is None


@pytest.mark.parametrize(("role", "about"), list(product(ROLES, About)))
def test_only_the_operator_approves_and_a_stranger_decides_nothing(role: Role | None, about: About) -> None:
    may = {Role.OPERATOR: set(About), Role.TRUSTED: {About.ANSWER}, Role.GUEST: {About.ANSWER}, None: set[About]()}
    assert may_decide(role, about) is (about in may[role])


@pytest.mark.parametrize(("chat", "sessions", "role"), list(product(ChatType, Sessions, Role)))
def test_a_group_owns_its_session_unless_each_person_has_one(chat: ChatType, sessions: Sessions, role: Role) -> None:
    owner = owner_in("telegram", "-100", chat, sessions, role, "7")
    if chat is ChatType.GROUP and sessions is Sessions.CHAT:
        assert owner == "telegram:group:-100"
    else:
        assert owner == ("local" if role is Role.OPERATOR else "telegram:7")


@pytest.mark.parametrize("role", list(Role))
def test_a_group_is_never_the_owner_that_a_person_is(role: Role) -> None:
    """There are platforms that count users and chats alike."""
    group = owner_in("line", "7", ChatType.GROUP, Sessions.CHAT, role, "8")
    assert group != owner_of(role, "line", "7")


@pytest.mark.parametrize(
    ("before", "open_now", "asked"),
    [
        (None, 0, Asked.NEW),
        (None, OPEN_MAX - 1, Asked.NEW),
        (None, OPEN_MAX, Asked.FULL),
        (pairing(), 0, Asked.OPEN),
        (pairing(), OPEN_MAX, Asked.OPEN),
        (pairing(expires_at=NOW), 0, Asked.NEW),
        (pairing(expires_at=NOW), OPEN_MAX, Asked.FULL),
        (pairing(decided=Choice.GUEST), 0, Asked.NEW),
        (pairing(decided=Choice.DENY, expires_at=NOW + DENIED_MS), 0, Asked.DENIED),
        (pairing(decided=Choice.DENY, expires_at=NOW), 0, Asked.NEW),
    ],
)
def test_a_person_gets_one_code_at_a_time_and_few_people_do(before: Pairing | None, open_now: int, asked: Asked) -> None:
    assert may_ask(before, open_now, NOW) is asked


@pytest.mark.parametrize(("decided", "choice"), list(product((None, *Choice), Choice)))
def test_a_request_is_decided_once(decided: Choice | None, choice: Choice) -> None:
    request = pairing(decided=decided)
    if decided is None or decided is choice:
        assert people.decide(request, choice, NOW) is (decided is None)
    else:
        with pytest.raises(Stale, match=decided):
            people.decide(request, choice, NOW)


@pytest.mark.parametrize("choice", list(Choice))
def test_an_expired_request_is_not_decided(choice: Choice) -> None:
    with pytest.raises(Rejected, match="expired"):
        people.decide(pairing(), choice, NOW + PAIRING_MS)
    assert people.decide(pairing(), choice, NOW + PAIRING_MS - 1)


@pytest.mark.parametrize("typed", ["ABCD2345", "abcd2345", "abcd-2345", " ABCD 2345 "])
def test_a_code_may_be_typed_in_several_ways(typed: str) -> None:
    assert pairing().is_asked_by(typed)


@pytest.mark.parametrize("typed", ["ABCD2346", "", "ABCD234", pairing().code_digest])
def test_another_code_is_none_of_a_request(typed: str) -> None:
    assert not pairing().is_asked_by(typed)


def test_one_code_has_another_digest_for_each_request() -> None:
    assert code_digest(PairingId("pair_1"), "ABCD2345") != code_digest(PairingId("pair_2"), "ABCD2345")
