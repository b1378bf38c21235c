"""The gate of an account: whose messages become turns, and what the others are told."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.channels.chat.account import ChatAccount, ChatServices
from holdfast.core import people
from holdfast.core.chats import ChatMessage, Place, StagedEvent
from holdfast.core.delivery import Button, Delivery, Extra
from holdfast.core.keys import LOCAL
from holdfast.core.legible import one_line
from holdfast.core.people import MESSAGE_MAX, NAME_MAX, PAIRING_MS, Admission, Groups, Pairing, Role
from holdfast.core.verbatim import span
from holdfast.ids import PairingId, new_pairing_code, new_pairing_id

# A sender who is not the operator gets no more answers than this in an hour: two programs could talk to each other for ever.
ANSWERS_MAX = 30
HOUR_MS = 3_600_000


def request_key(pairing_id: PairingId) -> str:
    """Return what identifies the notice that tells the operator of a request."""
    return f"{pairing_id}:request"


class Gate:
    """Decides about messages of one account."""

    def __init__(self, account: ChatAccount, services: ChatServices) -> None:
        self._account = account
        self._settings = account.settings
        self._services = services
        self._store = services.store

    async def admit(self, message: ChatMessage, *, addresses_bot: bool) -> Admission:
        """Return what happens to a message."""
        return people.admit(
            message.sender,
            message.chat_type,
            addresses_bot=addresses_bot,
            groups=Groups(self._settings.groups),
            allow=self._settings.allow,
            person=await self._store.people.find(self._account.name, message.sender.id),
        )

    async def answers_enough(self, user_id: str, role: Role) -> bool:
        """Return whether a sender has had as many answers in an hour as they may."""
        if role is Role.OPERATOR:
            return False
        since = self._services.clock.now_ms() - HOUR_MS
        return await self._store.channels.answered(self._account.name, user_id, since) >= ANSWERS_MAX

    async def ask_to_pair(self, staged: Sequence[StagedEvent], message: ChatMessage) -> None:
        """Let a stranger ask to be let in.  Their messages wait for the decision, unless too many strangers wait."""
        now = self._services.clock.now_ms()
        pairing_id, code = new_pairing_id(now), new_pairing_code()
        pairing = Pairing(
            id=pairing_id,
            account=self._account.name,
            user_id=message.sender.id,
            user_name=one_line(message.sender.name)[:NAME_MAX],
            place=message.place,
            code_digest=people.code_digest(pairing_id, code),
            asked_at=now,
            expires_at=now + PAIRING_MS,
            message=message.text[:MESSAGE_MAX],
        )
        notices = [*self._code(pairing, code), *self._request(pairing)]
        await self._store.people.let_wait(pairing, [each.number for each in staged], notices)

    def _code(self, pairing: Pairing, code: str) -> Sequence[Delivery]:
        text = (
            f"I do not know you yet. Ask my operator to let you in with this code: {code}\n"
            "It is valid for one hour. Your message is kept until then."
        )
        return self._services.notice(LOCAL, self._account.target(pairing.place), text, f"{pairing.id}:code")

    def _request(self, pairing: Pairing) -> Sequence[Delivery]:
        """Tell the operator in the home chat, where there is one, who asks."""
        if (home := self._services.home()) is None:
            return ()
        named = f"{span(pairing.user_name)} " if pairing.user_name else ""
        who = f"{named}({span(pairing.user_id)})"
        # The least first: where there are no buttons, a number that was meant for another list lets no stranger in.
        buttons = tuple(
            (Button(label=label, value=f"p:{pairing.id}:{choice}"),)
            for label, choice in (("Deny", "deny"), ("Guest", "guest"), ("Trusted", "trusted"), ("It is me", "me"))
        )
        text = f"{who} asks to be let in on {self._account.name}: {span(pairing.message)}"
        return self._services.notice(LOCAL, home.target, text, request_key(pairing.id), Extra(buttons=buttons))

    async def tell(self, owner: str, place: Place, text: str, key: str) -> None:
        """Say something in a chat that is not an answer."""
        await self._services.notify(owner, self._account.target(place), text, key)
