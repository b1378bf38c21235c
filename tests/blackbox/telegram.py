"""A real gateway that has bots of a scripted Bot API server, and people who write to them."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from holdfast.drill.telegram.chats import Chat, Person, Shown
from holdfast.drill.telegram.server import TOKEN, BotApiServer, Call, Moment, telegram
from tests import scratch
from tests.blackbox import phones
from tests.blackbox.gateway import Gateway, gateways, until
from tests.blackbox.phones import Written
from tests.models.servers import ModelServer, counted

OPERATOR_ID = 1001
PATIENCE_S = 40.0


@dataclass
class Scene:
    """Gateways of one store, the Bot API server, and the people who write.  The model says what it was told."""

    nodes: Sequence[Gateway]
    there: BotApiServer
    model: ModelServer
    written: list[Written] = field(default_factory=list)
    _nonces: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def gateway(self) -> Gateway:
        return self.nodes[0]

    @property
    def ann(self) -> Person:
        """The operator."""
        return self.there.person(OPERATOR_ID, "Ann")

    @property
    def hers(self) -> Chat:
        """The chat of the operator with the bot."""
        return self.there.private(self.ann)

    @property
    def chats(self) -> list[Chat]:
        return list(self.there.chats.values())

    def writes(
        self, text: str = "hello", chat: Chat | None = None, person: Person | None = None, whole: str = "", **fields: Any
    ) -> Written:
        """Let a person write a message that begins with a nonce, and that is to be answered."""
        nonce = self.nonce()
        said = self.there.says(chat or self.hers, person or self.ann, f"{nonce} {text}", **fields)
        self.written.append(Written(nonce, said, whole))
        return self.written[-1]

    def asks_to_count(self, words: int, per_second: int, chat: Chat | None = None) -> Written:
        """Let the operator ask for an answer that takes its time."""
        nonce = self.nonce()
        said = self.there.says(chat or self.hers, self.ann, f"{nonce} script: count {words} at {per_second}")
        self.written.append(Written(nonce, said, counted(nonce, words)))
        return self.written[-1]

    def nonce(self) -> str:
        return f"n{next(self._nonces):05d}"

    async def sees(self, words: str, chat: Chat | None = None, patience_s: float = PATIENCE_S) -> Shown:
        """Return the message of the bot with these words as soon as a chat shows it."""
        here, found = chat or self.hers, list[Shown]()

        def is_there() -> bool:
            found[:] = [each for each in here.of_bot() if words in each.text]
            return bool(found)

        await until(is_there, f"{words!r} is shown", patience_s)
        return found[-1]

    async def answered(self, *written: Written) -> None:
        """Return when messages are answered in full; without any, all that were written."""
        wanted = written or self.written
        await until(lambda: all(map(phones.is_answered, wanted)), "every message is answered", PATIENCE_S)

    async def begun(self, written: Written) -> None:
        """Return when the model is asked to answer a message."""

        def is_asked() -> bool:
            return any(written.nonce in str(each.body["messages"][-1]["content"]) for each in self.model.requests)

        await until(is_asked, f"{written.nonce} is being answered", PATIENCE_S)

    async def rests(self, via: int = 0) -> None:
        """Return when all is answered, nothing waits to be sent, and nothing is shown at work."""
        await self.answered()
        await until(lambda: self._sends_nothing(via), "nothing is left to send", PATIENCE_S)

    async def verify(self, *, status_lines_lost: int = 0, via: int = 0) -> None:
        """Wait until all is at rest, and hold what the phones show against what was written."""
        await self.rests(via)
        with contextlib.suppress(TimeoutError):
            await until(lambda: len(phones.status_lines(self.chats)) <= status_lines_lost, "no work is shown", 10)
        problems = phones.wrong(self.chats, self.written, status_lines_lost=status_lines_lost)
        assert not problems, "\n".join(problems)

    def forget_status_lines(self) -> None:
        """Let people remove the status lines that the bot cannot remove."""
        for each in phones.status_lines(self.chats):
            each.is_deleted = True

    async def accounts(self, via: int = 0) -> dict[str, dict[str, Any]]:
        """Return what a gateway tells of its accounts, by name."""
        socket = httpx2.AsyncHTTPTransport(uds=str(self.nodes[via].home / "gateway.sock"))
        async with httpx2.AsyncClient(transport=socket, base_url="http://localhost") as operator:
            answer = await operator.get("/api/channels")
        answer.raise_for_status()
        return {each["name"]: each for each in answer.json()["items"]}

    async def _sends_nothing(self, via: int) -> bool:
        try:
            return not any(each["pending_deliveries"] for each in (await self.accounts(via)).values())
        except (httpx2.TransportError, httpx2.HTTPStatusError):
            # It was killed meanwhile, and comes back.
            return False


@dataclass
class Fuse:
    """Kills a gateway beside the nth call of the Bot API, or of one of its methods."""

    scene: Scene
    nth: int
    moment: Moment
    method: str = ""
    # The call beside which it burned.
    burned: Call | None = None

    def lit(self) -> None:
        self.scene.there.watch = self._watch

    def out(self) -> None:
        self.scene.there.watch = lambda _call, _moment: True

    @property
    def lost_status_line(self) -> int:
        """How many status lines nobody can know of: that Telegram shows them was on its way to the gateway."""
        sent = self.burned is not None and self.burned.method == "sendMessage" and self.moment is not Moment.ARRIVED
        return int(sent and self.burned is not None and phones.is_status_text(str(self.burned.parameters["text"])))

    def _watch(self, call: Call, moment: Moment) -> bool:
        if self.burned or moment is not self.moment or self.method not in ("", call.method):
            return True
        self.nth -= 1
        if self.nth:
            return True
        self.burned = call
        self.scene.gateway.signal(signal.SIGKILL)
        return False


def bot(there: BotApiServer, token: str = TOKEN, **settings: object) -> dict[str, object]:
    """Return the settings of an account."""
    return {"kind": "telegram", "token": token, "api_base": there.url, "allow": [str(OPERATOR_ID)], **settings}


@contextlib.asynccontextmanager
async def scene(
    nodes: int = 1,
    accounts: Callable[[BotApiServer], Mapping[str, Mapping[str, object]]] | None = None,
    settings: Mapping[str, str] | None = None,
    script: str = "echo",
    **account: object,
) -> AsyncIterator[Scene]:
    """Give out gateways that are not started yet, with one bot or with those that `accounts` names."""
    async with telegram() as there, ModelServer(script).running() as model:
        tables = accounts(there) if accounts else {"telegram": bot(there, **account)}
        chosen = {
            "model__name": "openai:scripted",
            "model__base_url": model.url,
            "model__api_key": "a-key-for-the-scripted-model",
            "memory__provider": "none",
            **(settings or {}),
        }
        with gateways(nodes, **chosen) as made:
            for each in made:
                each.home.mkdir()
                if "store__url" not in chosen:
                    scratch.furnish(each.home)
                (each.home / "holdfast.toml").write_text("".join(_table(name, table) for name, table in tables.items()))
            here = Scene(made, there, model)
            # The operator has written to the bot once, or it could not write to her.
            assert here.hers.is_started
            try:
                yield here
            except BaseException as error:
                for each in made:
                    error.add_note(each.tail())
                raise


def _table(name: str, table: Mapping[str, object]) -> str:
    return f"[channels.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
