"""People: who may write to the agent in a chat, on whose behalf its turns work, and what they may decide."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from holdfast.core.chats import ChatType, Member, Place
from holdfast.core.keys import LOCAL
from holdfast.core.questions import About
from holdfast.errors import Rejected, Stale
from holdfast.ids import PairingId

# How long the code of a pairing is valid.
PAIRING_MS = 3_600_000
# How many pairings of one account wait at the same time.  Further strangers get no answer.
OPEN_MAX = 3
# For how long a person who was denied gets no new code.
DENIED_MS = 7 * 24 * 3_600_000
# How much of the message that asked is kept to be shown, in characters.
MESSAGE_MAX = 500
NAME_MAX = 100


class Role(StrEnum):
    """What a person may do."""

    # The operator, who may do and decide everything.
    OPERATOR = "operator"
    # A person of their own, with the tools that touch this machine.
    TRUSTED = "trusted"
    # A person of their own, with the tools that use only their own data.
    GUEST = "guest"


class Choice(StrEnum):
    """How the operator decides about a person who asks."""

    ME = "me"
    TRUSTED = "trusted"
    GUEST = "guest"
    DENY = "deny"


class Groups(StrEnum):
    """Which messages of a group are answered."""

    # Those that mention the bot or reply to it.
    MENTION = "mention"
    ALL = "all"
    OFF = "off"


class Sessions(StrEnum):
    """What has a session in a group."""

    CHAT = "chat"
    PERSON = "person"


ROLES: Mapping[Choice, Role] = MappingProxyType(
    {Choice.ME: Role.OPERATOR, Choice.TRUSTED: Role.TRUSTED, Choice.GUEST: Role.GUEST}
)


# What is told of a decision, about the person it concerns.
TOLD: Mapping[Choice, str] = MappingProxyType({
    Choice.ME: "{} is you now: their chats are yours.",
    Choice.TRUSTED: "{} is let in, with the tools of this machine.",
    Choice.GUEST: "{} is let in as a guest, with their own data only.",
    Choice.DENY: "{} is not let in, and gets no new code for a week.",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person whom an account knows."""

    account: str
    # The platform's id of the person.
    user_id: str
    user_name: str
    role: Role
    # Who owns the sessions of their private chats.
    owner: str
    # None for a person who was let in by `allow` of the configuration alone.
    approved_at: int | None = None
    last_seen_at: int | None = None

    @property
    def id(self) -> str:
        return person_id(self.account, self.user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """A person who asks to be let in.  The person has the code; only its digest is kept."""

    id: PairingId
    account: str
    user_id: str
    user_name: str
    # Where the person wrote, and is told how it was decided.
    place: Place
    code_digest: str
    asked_at: int
    expires_at: int
    # The beginning of the message that asked.
    message: str
    decided: Choice | None = None

    def is_open(self, now_ms: int) -> bool:
        return self.decided is None and now_ms < self.expires_at

    def is_asked_by(self, code: str) -> bool:
        """Return whether this is the pairing of a code."""
        return hmac.compare_digest(self.code_digest, code_digest(self.id, code))


class Verdict(StrEnum):
    """What happens to a message."""

    ADMIT = "admit"
    # Its sender is asked to pair.
    PAIR = "pair"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What happens to a message.  `role` is that of its sender where it is admitted."""

    verdict: Verdict
    role: Role | None = None


class Asked(StrEnum):
    """What became of asking for a pairing."""

    # There is a new code, which the person is told.
    NEW = "new"
    # The person has a code that is still valid.
    OPEN = "open"
    # The person was denied a short time ago.
    DENIED = "denied"
    # Too many others wait.
    FULL = "full"


def person_id(account: str, user_id: str) -> str:
    """Return the name of a person, which is also the owner of their sessions unless they are the operator."""
    return f"{account}:{user_id}"


def owner_of(role: Role, account: str, user_id: str) -> str:
    """Return who owns the sessions of a person's private chats."""
    return LOCAL if role is Role.OPERATOR else person_id(account, user_id)


def owner_in(account: str, chat_id: str, chat_type: ChatType, sessions: Sessions, role: Role, user_id: str) -> str:
    """Return who owns the session that a message is for.

    A group has an owner of its own, which has the rights of a guest, unless each of its people has a session.  Its form is
    not that of a person, because a platform may give a user and a chat the same id.
    """
    if chat_type is ChatType.GROUP and sessions is Sessions.CHAT:
        return f"{account}:group:{chat_id}"
    return owner_of(role, account, user_id)


def role_of(member: Member, allow: Collection[str], person: Person | None) -> Role | None:
    """Return the role of a user of the platform; None for a stranger.  A bot has one only if `allow` names it."""
    if member.id in allow:
        return Role.OPERATOR
    if member.is_bot or person is None or person.approved_at is None:
        return None
    return person.role


def admit(
    member: Member,
    chat_type: ChatType,
    *,
    addresses_bot: bool,
    groups: Groups,
    allow: Collection[str],
    person: Person | None,
) -> Admission:
    """Return what happens to a message.  A stranger is asked to pair in a private chat, and ignored in a group."""
    in_group = chat_type is ChatType.GROUP
    if in_group and (groups is Groups.OFF or (groups is Groups.MENTION and not addresses_bot)):
        return Admission(verdict=Verdict.IGNORE)
    if role := role_of(member, allow, person):
        return Admission(verdict=Verdict.ADMIT, role=role)
    return Admission(verdict=Verdict.IGNORE if in_group or member.is_bot else Verdict.PAIR)


def may_decide(role: Role | None, about: About) -> bool:
    """Return whether a person may answer a question.  Only the operator approves, and gives more budget."""
    return role is Role.OPERATOR or (role is not None and about is About.ANSWER)


def may_ask(before: Pairing | None, open_now: int, now_ms: int) -> Asked:
    """Return what becomes of asking; `before` is the earlier pairing of the person, `open_now` how many others wait."""
    if before and before.decided is Choice.DENY and now_ms < before.expires_at:
        return Asked.DENIED
    if before and before.is_open(now_ms):
        return Asked.OPEN
    return Asked.NEW if open_now < OPEN_MAX else Asked.FULL


def decide(pairing: Pairing, choice: Choice, now_ms: int) -> bool:
    """Return whether a decision is new; False for one that was made before.

    Raises `Stale` where it was decided otherwise, and `Rejected` where the code has expired.
    """
    if pairing.decided is choice:
        return False
    if pairing.decided is not None:
        raise Stale(f"the request of {pairing.user_name or pairing.user_id} is settled already: {pairing.decided}")
    if not pairing.is_open(now_ms):
        raise Rejected(f"the code of {pairing.user_name or pairing.user_id} has expired; they get a new one when they write")
    return True


def code_digest(pairing_id: PairingId, code: str) -> str:
    """Return what is kept of a code.  Case, blanks and hyphens do not count, because people type codes."""
    plain = code.upper().replace("-", "").replace(" ", "")
    return hashlib.sha256(f"{pairing_id}:{plain}".encode("utf-8", "surrogatepass")).hexdigest()
