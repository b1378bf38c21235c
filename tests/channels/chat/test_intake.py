"""The intake: what was staged becomes turns, once, in the order of each chat, for those who may."""

from __future__ import annotations

import asyncio
import io
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pypdf
import pytest
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from holdfast.channels.chat import gate, intake, triage
from holdfast.channels.chat.account import ChatAccount, ChatServices, Home, one_part
from holdfast.channels.chat.intake import LEFT_OUT, Intake
from holdfast.channels.chat.port import Bot, ChatEvent, ChatType, Member, MessageEdited, Place, Pressed, RemoteFile
from holdfast.channels.chat.receiver import Receiver
from holdfast.channels.chat.triage import BacklogChoice
from holdfast.clock import SystemClock
from holdfast.config import GatewayConfig, SessionsConfig
from holdfast.core.chats import ChatMessage, ChatMoved
from holdfast.core.delivery import Delivery
from holdfast.core.intake import Inbound, Receipt
from holdfast.core.people import Choice
from holdfast.core.redaction import Redaction
from holdfast.core.sessions import Session, Source
from holdfast.core.transcript import Role, fold
from holdfast.core.turns import Turn, TurnState
from holdfast.engine.inbox import Inbox
from holdfast.errors import QueueFull, StoreDown, Unavailable
from holdfast.ids import NodeId
from holdfast.offload.pool import Pool
from holdfast.ports import Upload
from holdfast.store import rows
from holdfast.store.audit import audit
from holdfast.store.channels import EVENTS_TOPIC
from holdfast.store.database import Row, Run, Transaction
from holdfast.store.store import Store
from tests.channels.chat import platform
from tests.channels.chat.platform import ACCOUNT, BOT, ScriptedPlatform, account_of, beside, until
from tests.channels.chat.test_receiver import QUICK, joined
from tests.claims import claim

Open = Callable[[], Awaitable[Store]]
ME = Member(id="5", name="Ada")
GUEST = Member(id="6", name="Grace: the second")
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 16
_IDS = iter(range(1, 1_000_000))


def now_ms() -> int:
    return int(time.time() * 1000)


def said(text: str = "hello", *, chat: str = "7", thread: str = "", **changes: Any) -> ChatMessage:
    return ChatMessage(
        **{
            "place": Place(chat_id=chat, thread_id=thread),
            "sender": ME,
            "message_id": str(next(_IDS)),
            "text": text,
            "sent_at": now_ms(),
            **changes,
        }
    )


def apart(*messages: ChatMessage, by_ms: int = 3_000) -> list[ChatMessage]:
    """Return messages that were sent so far apart that none is joined with another."""
    return [
        ChatMessage(**{**_fields(each), "sent_at": each.sent_at - by_ms * (len(messages) - number)})
        for number, each in enumerate(messages)
    ]


def _fields(message: ChatMessage) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}


def in_group(text: str, **changes: Any) -> ChatMessage:
    return said(text, **{"chat": "-100", "chat_type": ChatType.GROUP, "addresses_bot": True, **changes})


@dataclass
class Kept:
    """Keeps files in this process."""

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    async def keep(self, name: str, content: bytes) -> Upload:
        self.files[name] = content
        return Upload(path=f"uploads/{name}", name=name, bytes=len(content))


@dataclass
class World:
    """One account on a real store with a real inbox, and no agent: turns stay queued."""

    store: Store
    platform: ScriptedPlatform
    node_id: NodeId
    settings: dict[str, object]
    pressed: list[Pressed] = field(default_factory=list[Pressed])
    kept: Kept = field(default_factory=Kept)
    pool: Pool | None = None
    # Runs instead of the inbox, where a test says so.
    accept: Callable[[Inbound], Awaitable[Receipt]] | None = None

    async def _accept(self, message: Inbound) -> Receipt:
        if self.accept:
            return await self.accept(message)
        return await self.inbox.accept(message)

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.store, GatewayConfig(), SessionsConfig(), Redaction(), SystemClock())

    async def _press(self, account: ChatAccount, pressed: Pressed) -> None:
        self.pressed.append(pressed)

    def _home(self) -> Home | None:
        return Home(target=f"{ACCOUNT}:{home}", split=one_part) if (home := self.settings.get("home")) else None

    @property
    def account(self) -> ChatAccount:
        return account_of(self.platform, **self.settings)

    @property
    def services(self) -> ChatServices:
        return ChatServices(
            store=self.store,
            clock=SystemClock(),
            node_id=self.node_id,
            accept=self._accept,
            press=self._press,
            home=self._home,
            uploads=self.kept,
            pool=self.pool,
        )

    @property
    def intake(self) -> Intake:
        return Intake(self.account, self.services)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with beside(Receiver(self.account, self.services, QUICK).run(self.intake.run)):
            yield

    async def hear(self, *events: ChatEvent) -> None:
        """Report events, and return once all of them are handled or held."""
        self.platform.report(*events)
        await until(lambda: self.platform.acknowledged == len(self.platform.events))
        await self.quiet()

    async def quiet(self) -> None:
        async def is_empty() -> bool:
            return not await self.store.channels.staged(ACCOUNT)

        await until(is_empty)

    async def sessions(self) -> list[Session]:
        found = await query(self.store, f"SELECT {rows.SESSION} FROM sessions ORDER BY created_at, id")
        return [rows.session(row) for row in found]

    async def asked(self) -> list[str]:
        """Return what the turns of all sessions are asked, in the order of their acceptance."""
        turns = [turn for session in await self.sessions() for turn in await self.store.turns.list(session.id)]
        return [await self.store.turns.asked(turn.id) for turn in sorted(turns, key=lambda each: each.accepted_at)]

    async def turns(self) -> list[Turn]:
        (session,) = await self.sessions()
        return await self.store.turns.list(session.id)

    async def has_told(self) -> bool:
        return bool(await self.notices())

    async def notices(self) -> list[Delivery]:
        """Return what was said that is no answer."""
        return [rows.delivered(row) for row in await query(self.store, f"SELECT {rows.DELIVERY} FROM deliveries")]


async def query(store: Store, sql: str) -> list[Row]:
    def read() -> Transaction[list[Row]]:
        return (yield Run(sql))

    return await store.database.read(read)


@asynccontextmanager
async def world(open_it: Open, **settings: object) -> AsyncIterator[World]:
    store = await open_it()
    try:
        yield World(store=store, platform=ScriptedPlatform(), node_id=await joined(store), settings=settings)
        assert await audit(store.database) == []
    finally:
        await store.close()


async def test_a_message_becomes_a_turn_of_its_chat(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(said("hello", chat_name="Ada"))
        (session,) = await here.sessions()
        (turn,) = await here.turns()
        assert (session.channel, session.key, session.owner) == (ACCOUNT, "telegram:7", "local")
        assert session.source == Source(chat_id="7", chat_name="Ada", chat_type="private", user="5", user_name="Ada")
        assert turn.reply_to == "telegram:7"
        assert await here.asked() == ["hello"]


async def test_what_is_reported_again_becomes_no_second_turn(open_it: Open) -> None:
    """A3: however it is reported again, with something new or alone."""
    first, second, third = apart(said("one"), said("two"), said("three"))
    async with world(open_it) as here, here.running():
        await here.hear(first, second)
        await here.hear(first)
        await here.hear(second, third, first)
        assert await here.asked() == ["one", "two", "three"]


async def test_each_chat_has_its_own_order(open_it: Open) -> None:
    texts = [f"{chat} {number}" for number in range(4) for chat in "abc"]
    messages = apart(*(said(text, chat=text[0]) for text in texts))
    async with world(open_it) as here, here.running():
        await here.hear(*messages)
        for chat in "abc":
            (session,) = [each for each in await here.sessions() if each.key == f"telegram:{chat}"]
            turns = await here.store.turns.list(session.id)
            assert [await here.store.turns.asked(each.id) for each in turns] == [f"{chat} {each}" for each in range(4)]


async def test_parts_that_were_sent_as_one_are_one_turn(open_it: Open) -> None:
    at = now_ms()
    async with world(open_it) as here, here.running():
        await here.hear(said("one", sent_at=at), said("two", sent_at=at), said("later", sent_at=at + 5_000))
        assert await here.asked() == ["one\ntwo", "later"]
        (first, _) = await here.turns()
        parts = await here.store.channels.messages_of(first.id)
        assert ["one\ntwo"[each.position : each.position + each.length] for each in parts] == ["one", "two"]


async def test_a_long_paste_waits_longer_for_its_next_part(open_it: Open) -> None:
    at = now_ms()
    async with world(open_it) as here, here.running():
        here.platform.report(said("x" * 4_000, sent_at=at))
        await until(lambda: here.platform.acknowledged == 1)
        time.sleep(0.4)  # noqa: ASYNC251 - The part arrives late, whatever else is going on.
        await here.hear(said("end", sent_at=at))
        assert await here.asked() == ["x" * 4_000 + "\nend"]


async def test_the_speakers_of_a_group_are_named(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(*apart(in_group("hello", chat_name="Crew"), in_group("and me", thread="9")))
        first, second = await here.sessions()
        # Several people speak in it, so it is from none of them.
        assert first.source == Source(chat_id="-100", chat_name="Crew", chat_type="group")
        assert (first.key, first.owner, second.key) == ("telegram:-100", "telegram:group:-100", "telegram:-100:9")
        assert await here.asked() == ["Ada: hello", "Ada: and me"]


async def test_the_people_of_a_group_may_have_sessions_of_their_own(open_it: Open) -> None:
    async with world(open_it, sessions="person") as here, here.running():
        await here.hear(in_group("hello"))
        (session,) = await here.sessions()
        assert (session.key, session.owner) == ("telegram:-100:5", "local")
        assert (session.source.user, session.source.user_name) == ("5", "Ada")
        assert await here.asked() == ["hello"]


@pytest.mark.parametrize(
    "ignored",
    [
        said("by itself", sender=Member(id=BOT.user_id, name="holdfast_bot")),
        said("beep", sender=Member(id="8", name="other", is_bot=True)),
        in_group("not for it", addresses_bot=False),
        in_group("a stranger", sender=GUEST),
        said("", files=()),
    ],
    ids=["own", "bot", "not addressed", "stranger in a group", "empty"],
)
async def test_what_is_not_for_the_agent_is_dropped(open_it: Open, ignored: ChatMessage) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(ignored)
        assert await here.sessions() == []
        assert await here.notices() == []


async def test_a_stranger_gets_a_code_and_is_answered_once_let_in(open_it: Open) -> None:
    async with world(open_it, home="42") as here, here.running():
        first, second = apart(said("let me in", chat="6", sender=GUEST), said("please", chat="6", sender=GUEST))
        await here.hear(first, second)
        assert await here.sessions() == []
        (pairing,) = await here.store.people.pairings()
        told = {each.target: each for each in await here.notices()}
        assert set(told) == {"telegram:6", "telegram:42"}
        assert [button.value for (button,) in told["telegram:42"].extra.buttons] == [
            f"p:{pairing.id}:{choice}" for choice in ("deny", "guest", "trusted", "me")
        ]
        (code,) = [word for word in told["telegram:6"].text.split() if pairing.is_asked_by(word)]
        assert code not in told["telegram:42"].text
        await here.store.people.decide(pairing.id, Choice.GUEST, "local", now_ms())
        await until(lambda: _has(here, 2))
        assert await here.asked() == ["let me in", "please"]
        (session,) = await here.sessions()
        assert session.owner == "telegram:6"


async def test_what_the_operator_wrote_before_the_settings_named_them_is_answered(open_it: Open) -> None:
    async with world(open_it) as here:
        async with here.running():
            await here.hear(said("hello", chat="6", sender=GUEST))
            assert await here.sessions() == []
        here.settings["allow"] = ("6",)
        async with here.running():
            await until(lambda: _has(here, 1))
            (session,) = await here.sessions()
            assert session.owner == "local"
            assert await here.store.people.pairings() == []


async def test_another_bot_of_the_same_account_counts_its_messages_anew(
    open_it: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, command = said("to the old one", message_id="1"), said("/new", message_id="2")
    async with world(open_it) as here:
        async with here.running():
            await here.hear(first, command)
        monkeypatch.setattr(platform, "BOT", Bot(user_id="2000", name="new_bot"))
        here.platform = ScriptedPlatform()
        async with here.running():
            await here.hear(said("to the new one", message_id="1"), said("/status", message_id="2"))
            assert await here.asked() == ["to the old one", "to the new one"]
            assert "to the" not in (await here.notices())[-1].text


async def test_a_message_that_comes_again_while_it_is_taken_is_dropped(open_it: Open) -> None:
    """A3: on a shared database both can be committed at the same moment."""
    message = said("hello")
    async with world(open_it) as here, here.running():
        await here.hear(message)
        await execute(here.store, "UPDATE chat_messages SET message_id = 'away'")
        here.accept = refuse(StoreDown("away"))
        here.platform.report(message, said("next"))
        await until(lambda: here.platform.acknowledged == 3)
        await execute(here.store, f"UPDATE chat_messages SET message_id = '{message.message_id}'")
        here.accept = None
        await here.quiet()
        assert await here.asked() == ["hello", "next"]


async def execute(store: Store, sql: str) -> None:
    def write() -> Transaction[None]:
        yield Run(sql)

    await store.database.write(write)


async def _has(here: World, turns: int) -> bool:
    return len(await here.asked()) == turns


async def test_a_command_is_done_once_and_answered_with_a_notice(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(said("hello"))
        command = said("/new")
        await here.hear(command)
        await here.hear(command, said("again"))
        assert [each.state.value for each in await here.sessions()] == ["ended", "open"]
        (notice,) = await here.notices()
        assert notice.target == "telegram:7"
        assert "new conversation" in notice.text


async def test_what_comes_with_a_command_before_words_comes_along(open_it: Open) -> None:
    picture = RemoteFile(id="f1", name="a.png", media_type="image/png", bytes=len(PNG))
    async with world(open_it) as here, here.running():
        here.platform.files["f1"] = PNG
        first, second = apart(in_group("/queue look", files=(picture,)), in_group("/steer", files=(picture,)))
        await here.hear(first, second)
        one, two = await here.asked()
        assert one.startswith("Ada: look\nAttached: a.png")
        assert two.startswith("Ada: \nAttached: a.png")
        assert [len(await here.store.turns.images(each.id)) for each in await here.turns()] == [1, 1]
        await here.hear(edit(first, "/queue look here"))
        assert (await here.asked())[0].startswith("Ada: look here\nAttached: a.png")


async def test_files_go_to_the_background_and_a_person_is_told_where_they_are_left_out(open_it: Open) -> None:
    picture = RemoteFile(id="f1", name="a.png", media_type="image/png", bytes=len(PNG))
    async with world(open_it) as here, here.running():
        here.platform.files["f1"] = PNG
        await here.hear(*apart(said("/background look", files=(picture,)), said("/help", files=(picture,))))
        (asked,) = await here.asked()
        assert "look\nAttached: a.png" in asked
        (aside,) = [each for session in await here.sessions() for each in await here.store.turns.list(session.id)]
        assert len(await here.store.turns.images(aside.id)) == 1
        done, helped = sorted((each.text for each in await here.notices()), key=lambda text: LEFT_OUT in text)
        assert "At work in the background" in done
        assert helped.endswith(LEFT_OUT)


async def test_a_message_does_not_wait_for_long_for_its_file(open_it: Open) -> None:
    async def refuse_file(file: RemoteFile, bytes_max: int) -> bytes:
        raise Unavailable("flood", retry_after_s=3_600)

    async with world(open_it) as here, here.running():
        here.platform.fetch = refuse_file
        await here.hear(said("look", files=(RemoteFile(id="f", name="a.txt", media_type="text/plain", bytes=1),)))
        assert "could not be fetched: flood" in (await here.asked())[0]


async def test_files_are_kept_and_named_to_the_model(open_it: Open) -> None:
    files = (
        RemoteFile(id="p", name="photo.png", media_type="image/png", bytes=len(PNG)),
        RemoteFile(id="d", name="a\nb.txt", media_type="text/plain", bytes=4),
        RemoteFile(id="big", name="big.iso", media_type="application/x-iso", bytes=10**9),
    )
    async with world(open_it) as here, here.running():
        here.platform.files = {"p": PNG, "d": b"text"}
        await here.hear(said("look", files=files))
        (asked,) = await here.asked()
        (turn,) = await here.turns()
        assert asked.splitlines()[:4] == [
            "look",
            f"Attached: photo.png (image/png, {len(PNG)} bytes) at uploads/photo.png",
            "Attached: a b.txt (text/plain, 4 bytes) at uploads/a",
            "b.txt, which says:",
        ]
        assert "big.iso is larger than" in asked
        (image,) = await here.store.turns.images(turn.id)
        assert image.data == PNG


def pdf(
    content: bytes = b"BT /F1 12 Tf (high tide at noon) Tj ET", *, encrypted: bool = False, packed: bool = False
) -> bytes:
    """Return a PDF file of one page."""
    writer = pypdf.PdfWriter()
    page = writer.add_blank_page(200, 200)
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject({NameObject(name): NameObject(value) for name, value in font.items()})
    page[NameObject("/Resources")] = DictionaryObject(
        {
            NameObject("/Font"): DictionaryObject({NameObject("/F1"): fonts}),
        }
    )
    stream = StreamObject()
    stream.set_data(zlib.compress(content, 9) if packed else content)
    if packed:
        stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    page[NameObject("/Contents")] = stream
    if encrypted:
        writer.encrypt("secret")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (pdf, ", which says:\nhigh tide at noon"),
        (lambda: pdf(encrypted=True), ", whose text cannot be read: it is encrypted"),
        (lambda: pdf(b""), ", whose text cannot be read: it has no text, so it may be made of pictures"),
        (lambda: b"%PDF-1.7 nothing", ", whose text cannot be read: it is broken"),
        (lambda: pdf(bytes(100_000_000), packed=True), ", whose text cannot be read: "),
    ],
    ids=["text", "encrypted", "pictures", "broken", "bomb"],
)
async def test_the_text_of_a_pdf_is_told_to_the_model(open_it: Open, made: Callable[[], bytes], told: str) -> None:
    content = made()
    file = RemoteFile(id="d", name="a.pdf", media_type="application/pdf", bytes=len(content))
    async with world(open_it) as here:
        here.pool = Pool()
        here.platform.files["d"] = content
        async with here.running():
            await here.hear(said("look", files=(file,)))
            (asked,) = await here.asked()
        await here.pool.close()
        assert f" at uploads/a.pdf{told}" in asked


async def test_the_files_of_a_guest_are_not_put_into_the_workspace(open_it: Open) -> None:
    file = RemoteFile(id="d", name="a.txt", media_type="text/plain", bytes=4)
    async with world(open_it) as here, here.running():
        here.platform.files = {"d": b"text"}
        await let_in(here, GUEST)
        await here.hear(said("look", chat="6", sender=GUEST, files=(file,)))
        assert (await here.asked())[-1] == "look\nAttached: a.txt (text/plain, 4 bytes), which says:\ntext"
        assert here.kept.files == {}


async def let_in(here: World, member: Member) -> None:
    await here.hear(said("let me in", chat=member.id, sender=member))
    (pairing,) = await here.store.people.pairings()
    await here.store.people.decide(pairing.id, Choice.GUEST, "local", now_ms())
    await until(lambda: _has(here, 1))


async def test_an_edit_changes_what_waits_in_the_queue(open_it: Open) -> None:
    at = now_ms()
    one, two = said("one", sent_at=at), said("two", sent_at=at)
    async with world(open_it) as here, here.running():
        await here.hear(one, two)
        await here.hear(edit(one, "the first"))
        await here.hear(edit(two, "the second"))
        await here.hear(edit(one, "1"))
        (turn,) = await here.turns()
        assert await here.asked() == ["1\nthe second"]
        entries = await here.store.journal.read_turn(turn.id)
        assert [item.text for item in fold(entries) if item.role is Role.USER] == ["1\nthe second"]


async def test_an_edit_of_what_is_being_answered_changes_nothing(open_it: Open) -> None:
    message = said("one")
    async with world(open_it) as here, here.running():
        await here.hear(message)
        (turn,) = await here.turns()
        await start(here, turn)
        await here.hear(edit(message, "two"))
        assert await here.asked() == ["one"]


async def start(here: World, turn: Turn) -> None:
    (claimed,) = await claim(here.store, here.node_id, 1)
    assert claimed.id == turn.id
    if claimed.state is not TurnState.RUNNING:
        await here.store.turns.start(claimed, now_ms())


def edit(message: ChatMessage, text: str, sender: Member | None = None) -> MessageEdited:
    return MessageEdited(
        place=message.place,
        sender=sender or message.sender,
        message_id=message.message_id,
        text=text,
        edited_at=next(_IDS),
    )


async def test_only_the_sender_of_a_message_edits_it(open_it: Open) -> None:
    message, late = said("as I said it"), said("as I say it", chat="-100", chat_type=ChatType.GROUP, addresses_bot=True)
    async with world(open_it) as here, here.running():
        await here.hear(message)
        here.platform.report(edit(message, "forged", sender=GUEST), edit(late, "forged", sender=GUEST), late)
        await until(lambda: _has(here, 2))
        assert await here.asked() == ["as I said it", "Ada: as I say it"]


async def test_an_edit_is_of_the_chat_that_its_message_is_in(open_it: Open) -> None:
    """A group that has moved counts its messages anew."""
    before, after = in_group("before"), in_group("after", chat="-1007", message_id="99")
    async with world(open_it) as here, here.running():
        await here.hear(before, ChatMoved(from_chat_id="-100", to_chat_id="-1007"))
        here.platform.report(edit(in_group("another", message_id="99"), "edited"), after)
        await until(lambda: _has(here, 2))
        assert await here.asked() == ["Ada: before", "Ada: after"]


async def test_an_edit_whose_message_does_not_come_is_dropped(open_it: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "EDIT_WAIT_MS", 0)
    monkeypatch.setattr(intake, "LOOK_MS", 10)
    async with world(open_it) as here, here.running():
        here.platform.report(edit(said("of long ago"), "edited"))
        await until(lambda: here.platform.acknowledged == 1)
        await here.quiet()


async def test_a_press_is_handed_on_once(open_it: Open) -> None:
    press = Pressed(place=Place(chat_id="7"), sender=ME, message_id="1", press_id="p1", value="q:1:2:yes")
    async with world(open_it) as here, here.running():
        await here.hear(press)
        assert here.pressed == [press]


async def test_a_chat_with_another_id_is_the_same_conversation(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(in_group("before"))
        await here.hear(ChatMoved(from_chat_id="-100", to_chat_id="-1007"), in_group("after", chat="-1007"))
        (session,) = await here.sessions()
        first, second = await here.store.turns.list(session.id)
        assert (first.reply_to, second.reply_to) == ("telegram:-100", "telegram:-1007")
        assert session.owner == "telegram:group:-100"


@pytest.mark.parametrize(("choice", "left"), [("all", list("012345")), ("last", ["5"]), ("drop", [])])
async def test_many_old_messages_wait_for_a_decision(open_it: Open, choice: str, left: list[str]) -> None:
    two_hours = now_ms() - 2 * 3_600_000
    old = [said(str(number), sent_at=two_hours + number * 10_000) for number in range(6)]
    async with world(open_it) as here:
        async with here.running():
            await here.hear(*old)
            assert await here.sessions() == []
            # They are held first, and asked about then.
            await until(here.has_told)
            (question,) = await here.notices()
            (backlog_id,) = {button.value.split(":")[1] for (button,) in question.extra.buttons}
            assert max(len(button.value.encode()) for (button,) in question.extra.buttons) <= 64
            # What is said meanwhile is answered.
            await here.hear(said("new"))
            assert await here.asked() == ["new"]
        # A press works after a restart, which does not ask twice.
        async with here.running():
            await triage.settle(here.store.channels, backlog_id, BacklogChoice(choice))
            await until(lambda: _has(here, 1 + len(left)))
            await here.quiet()
            assert await here.asked() == ["new", *left]
            assert len(await here.notices()) == 1
            assert "before" in await triage.settle(here.store.channels, backlog_id, BacklogChoice.ALL)


async def test_what_was_missed_is_asked_about_once_however_it_comes(open_it: Open) -> None:
    two_hours = now_ms() - 2 * 3_600_000
    old = [said(str(number), sent_at=two_hours + number * 10_000) for number in range(20)]
    async with world(open_it) as here:
        here.platform.batch_max = 6
        async with here.running():
            await here.hear(*old)
            (question,) = await here.notices()
            assert question.text.startswith("20 messages")


async def test_a_message_whose_age_is_unknown_is_not_old(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        await here.hear(*(said(str(number), chat=str(number), sent_at=0) for number in range(3)))
        await here.hear(*(said(str(number), sent_at=0) for number in range(7)))
        assert await here.notices() == []


async def test_few_old_messages_are_answered_and_their_age_is_known(open_it: Open) -> None:
    two_hours = now_ms() - 2 * 3_600_000
    old = [said(str(number), sent_at=two_hours + number * 10_000) for number in range(5)]
    async with world(open_it) as here, here.running():
        await here.hear(*old)
        assert await here.asked() == list("01234")
        turn, *_ = await here.turns()
        entries = await here.store.journal.read_turn(turn.id)
        assert entries[0].data["sent_at"] == two_hours


async def test_one_sender_gets_so_many_answers_in_an_hour(open_it: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "ANSWERS_MAX", 3)
    async with world(open_it) as here, here.running():
        await let_in(here, GUEST)
        await here.hear(*apart(*(said(str(number), chat="6", sender=GUEST) for number in range(5))))
        assert await here.asked() == ["let me in", "0", "1"]
        assert [each.text for each in await here.notices() if "write again later" in each.text] != []
        # A command before the words is no way around.
        await here.hear(*apart(*(said(f"/queue {number}", chat="6", sender=GUEST) for number in range(5))))
        assert await here.asked() == ["let me in", "0", "1"]
        await here.hear(said("/background 5", chat="6", sender=GUEST))
        assert await here.asked() == ["let me in", "0", "1"]
        await here.hear(*apart(*(said(str(number)) for number in range(5))))
        assert len(await here.asked()) == 8


async def test_a_command_that_needs_no_agent_is_done_however_many_answers_there_were(
    open_it: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "ANSWERS_MAX", 1)
    async with world(open_it) as here, here.running():
        await let_in(here, GUEST)
        await here.hear(*apart(*(said(text, chat="6", sender=GUEST) for text in ("/help", "/status", "/stop"))))
        told = "\n".join(each.text for each in await here.notices())
        assert "/help: show this list" in told
        assert "Conversation telegram:6" in told
        assert "Stopped." in told
        assert "write again later" not in told


async def test_a_message_that_is_refused_is_told_why(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        here.accept = refuse(QueueFull("100 messages are waiting in this conversation already"))
        await here.hear(said("hello"))
        (notice,) = await here.notices()
        assert "100 messages are waiting" in notice.text


def refuse(*errors: Exception) -> Callable[[Inbound], Awaitable[Receipt]]:
    left = list(errors)

    async def accept(message: Inbound) -> Receipt:
        raise left.pop(0) if len(left) > 1 else left[0]

    return accept


async def test_what_cannot_be_taken_now_is_taken_later(open_it: Open) -> None:
    async with world(open_it) as here, here.running():
        failures = [StoreDown("away"), ValueError("a bug")]

        async def accept(message: Inbound) -> Receipt:
            if failures:
                raise failures.pop(0)
            return await here.inbox.accept(message)

        here.accept = accept
        await here.hear(said("hello"))
        assert await here.asked() == ["hello"]


async def test_one_chat_waits_for_no_other(open_it: Open) -> None:
    async with world(open_it) as here, here.running():

        async def accept(message: Inbound) -> Receipt:
            if message.text == "stuck":
                raise StoreDown("away")
            return await here.inbox.accept(message)

        here.accept = accept
        here.platform.report(said("stuck", chat="1"), said("fine", chat="2"))
        await until(lambda: _has(here, 1))
        assert await here.asked() == ["fine"]
        here.accept = None
        await here.quiet()


@pytest.mark.parametrize("point", ["before", "after"])
async def test_a_stop_beside_the_acceptance_loses_and_doubles_nothing(open_it: Open, point: str) -> None:
    """A1, A3: what was staged is one turn, wherever the node stops."""
    async with world(open_it) as here:
        stuck = asyncio.Event()

        async def accept(message: Inbound) -> Receipt:
            if point == "after":
                await here.inbox.accept(message)
            stuck.set()
            await asyncio.Event().wait()
            raise AssertionError

        here.accept = accept
        async with here.running():
            here.platform.report(said("hello"), said("/status"))
            await asyncio.wait_for(stuck.wait(), 10)
        here.accept = None
        async with here.running():
            await here.quiet()
            assert await here.asked() == ["hello"]
            assert len(await here.notices()) == 1


async def test_a_stop_that_meets_an_event_stops(open_it: Open) -> None:
    """Both reach the intake in one round of the loop."""
    async with world(open_it) as here:
        lease = await here.store.channels.claim(ACCOUNT, "scripted", here.node_id)
        assert lease
        running = asyncio.create_task(here.intake.run(lease))
        for _ in range(10):
            # The intake reads the same rows, and waits after that.
            await here.quiet()
        here.store.wakes.wake([EVENTS_TOPIC])
        running.cancel()
        await asyncio.wait((running,), timeout=2)
        assert running.cancelled()
