"""A client: writes, polls and follows over HTTP, and tells the history everything that it was told and shown."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import msgspec

from tests.blackbox.gateway import LOOK_S, Gateway, until
from tests.blackbox.history import Acknowledgement, Entry, History, Item, Outcome, Poll, Receipt, Stream, check


class Away(Exception):
    """The gateway says that it cannot answer just now."""


AWAY = (httpx2.TransportError, httpx2.StreamError, Away)
SETTLED = ("completed", "failed", "cancelled", "interrupted")


class Follower:
    """Reads the events of a session for as long as it lives, and asks again with its cursor whenever the stream breaks.

    With several addresses each connection is made to the next of them.
    """

    def __init__(self, webs: Sequence[httpx2.AsyncClient], stream: Stream) -> None:
        self.stream = stream
        self.connections = 0
        self._webs = itertools.cycle(webs)
        self._news = asyncio.Event()

    async def run(self) -> None:
        while True:
            with contextlib.suppress(*AWAY):
                await self._connect()
            await asyncio.sleep(LOOK_S)

    async def saw(self, kind: str, turn_id: str, name: str = "") -> Entry:
        """Return the first such entry, as soon as it has come."""
        while True:
            for entry in self.stream.entries:
                if (entry.kind, entry.turn_id) == (kind, turn_id) and name in str(entry.data.get("name", "")):
                    return entry
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 40)

    async def caught_up(self, seq: int) -> None:
        await until(lambda: self.seq >= seq, f"a follower has seen {seq}")

    @property
    def seq(self) -> int:
        return self.stream.entries[-1].seq if self.stream.entries else self.stream.after

    async def _connect(self) -> None:
        address = f"/api/sessions/{self.stream.session_id}/events"
        async with next(self._webs).stream("GET", address, headers={"Last-Event-ID": str(self.seq)}) as response:
            if response.status_code != 200:
                return
            self.connections += 1
            async for event in _events(response):
                if event.get("event") == "reset":
                    self.stream.resets += 1
                elif "data" in event:
                    entry = msgspec.json.decode(event["data"], type=Entry)
                    assert str(entry.seq) == event["id"]
                    self.stream.entries.append(entry)
                    self._news.set()


class Client:
    """Whoever uses a gateway; several gateways on one store are taken in turn."""

    def __init__(self, gateways: Sequence[Gateway], history: History, mark: str = "n") -> None:
        self.history = history
        self._gateways = gateways
        self._following: dict[Follower, asyncio.Task[None]] = {}
        # A follower keeps a connection for as long as it lives.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        self._webs = [
            httpx2.AsyncClient(base_url=each.url, verify=False, trust_env=False, timeout=30, limits=limits)
            for each in gateways
        ]
        # Another client of the same store has conversations of its own.
        self._name = f"blackbox-{secrets.token_hex(4)}"
        self._mark = mark
        self._nonces = itertools.count(1)
        self._keys = itertools.count(1)

    @property
    def gateway(self) -> Gateway:
        return self._gateways[0]

    @property
    def followers(self) -> list[Follower]:
        return list(self._following)

    async def get(self, path: str, via: int = 0, **params: object) -> Any:
        answer = await self._webs[via].get(path, params={name: str(value) for name, value in params.items()})
        if answer.status_code == 503:
            raise Away(answer.text)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        return answer.json()

    async def ask(self, method: str, path: str, body: object = None, via: int = 0) -> httpx2.Response:
        """Make any request, once."""
        return await self._webs[via].request(method, path, json={} if body is None and method != "GET" else body)

    async def answer(self, turn_id: str, text: str, via: int = 0) -> httpx2.Response:
        """Answer a question as the operator does, who alone can open the socket of the gateway."""
        socket = httpx2.AsyncHTTPTransport(uds=str(self._gateways[via].home / "gateway.sock"), verify=False)
        async with httpx2.AsyncClient(transport=socket, base_url="http://localhost", timeout=30) as operator:
            return await operator.post(f"/api/turns/{turn_id}/answer", json={"text": text})

    async def session(self, key: str = "", via: int = 0) -> str:
        opened = await self._insist("/api/sessions", {"key": key or f"{self._name}-{next(self._keys)}"}, via)
        return opened["id"]

    async def send(self, session_id: str, text: str, via: int = 0) -> Receipt:
        """Send a message until it is acknowledged, as the same message however often that takes."""
        nonce = self.nonce()
        text = self.history.sent[nonce] = f"{nonce} {text}"
        receipt = await self._insist(f"/api/sessions/{session_id}/messages", {"text": text}, via, nonce)
        told = Acknowledgement(nonce=nonce, session_id=receipt["session_id"], turn_id=receipt["turn_id"])
        self.history.acknowledged.append(told)
        return await self.turn(told.turn_id, via)

    def nonce(self) -> str:
        """Return the word by which the next message is known."""
        return f"{self._mark}{next(self._nonces):06d}"

    async def repeat(self, receipt: Receipt) -> Any:
        """Send a message once more, as a client does that has not heard the acknowledgement."""
        nonce = next(ack.nonce for ack in self.history.acknowledged if ack.turn_id == receipt.id)
        body = {"text": self.history.sent[nonce]}
        return await self._insist(f"/api/sessions/{receipt.session_id}/messages", body, 0, nonce)

    async def command(self, session_id: str, text: str) -> Any:
        """Send what is for the gateway itself."""
        answer = await self.ask("POST", f"/api/sessions/{session_id}/messages", {"text": text})
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def turn(self, turn_id: str, via: int = 0) -> Receipt:
        while True:
            with contextlib.suppress(*AWAY):
                receipt = msgspec.convert(await self.get(f"/api/turns/{turn_id}", via), Receipt)
                self.history.receipts.append(receipt)
                return receipt
            await asyncio.sleep(LOOK_S)

    async def comes_to(self, turn_id: str, *states: str, via: int = 0) -> Receipt:
        """Return the receipt of a turn once it is in one of these states; by default, at rest."""
        wanted = states or SETTLED
        receipt = await self.turn(turn_id, via)

        async def there() -> bool:
            nonlocal receipt
            receipt = await self.turn(turn_id, via)
            return receipt.state in wanted

        await until(there, f"{turn_id} is {' or '.join(wanted)}")
        return receipt

    async def poll(self, session_id: str, via: int = 0) -> Poll:
        page = await self.get(f"/api/sessions/{session_id}/messages", via)
        poll = Poll(session_id=session_id, seq=page["seq"], items=msgspec.convert(page["items"], list[Item]))
        self.history.polls.append(poll)
        return poll

    def follow(self, session_id: str, via: int = 0, after: int = 0) -> Follower:
        stream = Stream(session_id=session_id, after=after)
        self.history.streams.append(stream)
        follower = Follower([self._webs[via]], stream)
        self.come_back(follower)
        return follower

    async def leave(self, follower: Follower) -> None:
        """Stop following, without a word to the gateway."""
        task = self._following.pop(follower)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def come_back(self, follower: Follower) -> None:
        """Follow on from where one has left."""
        self._following[follower] = asyncio.create_task(follower.run())

    async def drains(self, via: int = 0) -> bool:
        """Return whether the gateway drains, or has done so and is gone."""
        try:
            return (await self.get("/health", via))["state"] == "draining"
        except AWAY:
            return True

    async def has_attempt(self, turn_id: str, attempt: int, via: int = 0) -> bool:
        return (await self.turn(turn_id, via)).attempt >= attempt

    async def rests(self) -> bool:
        return (await self.get("/api/status"))["running"] == 0

    async def answered(self, receipt: Receipt, via: int = 0) -> Receipt:
        """Return the receipt of a turn that must complete."""
        receipt = await self.comes_to(receipt.id, via=via)
        assert receipt.state == "completed", receipt
        return receipt

    async def said(self, receipt: Receipt, role: str = "assistant", via: int = 0) -> str:
        poll = await self.poll(receipt.session_id, via)
        return "".join(item.text for item in poll.items if (item.turn_id, item.role) == (receipt.id, role))

    async def settle(self, notes: Sequence[str] = (), via: int = 0) -> Outcome:
        """Wait until everything acknowledged is at rest and every follower has seen all; return what is there."""
        for ack in self.history.acknowledged:
            await self.comes_to(ack.turn_id, *SETTLED, "waiting", via=via)
        seen = (*self.history.acknowledged, *self.history.streams, *self.history.receipts)
        sessions = {each.session_id for each in seen}
        looks = {each: await self._look(each, via) for each in sessions}
        outcome = Outcome(
            journals={each: journal for each, (journal, _) in looks.items()},
            transcripts={each: poll.items for each, (_, poll) in looks.items()},
            turns={turn.id: turn for each in sessions for turn in await self._turns(each, via)},
            notes=notes,
        )
        for follower, task in self._following.items():
            if task.done():
                task.result()
            await follower.caught_up(len(outcome.journals[follower.stream.session_id]))
        return outcome

    async def verify(self, notes: Sequence[str] = (), via: int = 0) -> Outcome:
        """Settle, and hold everything that was seen against what is there."""
        outcome = await self.settle(notes, via)
        violations = check(self.history, outcome)
        assert not violations, "\n".join(violations)
        return outcome

    async def close(self) -> None:
        for task in self._following.values():
            task.cancel()
        await asyncio.gather(*self._following.values(), return_exceptions=True)
        for web in self._webs:
            await web.aclose()

    async def _look(self, session_id: str, via: int) -> tuple[list[Entry], Poll]:
        """Read journal and transcript until they are of the same moment: what was lost may be recovered in between."""
        while True:
            poll = await self.poll(session_id, via)
            journal = await self._journal(session_id, via)
            if len(journal) == poll.seq:
                return journal, poll

    async def _journal(self, session_id: str, via: int) -> list[Entry]:
        """Read the whole journal anew, as a fresh follower."""
        seq = (await self.get(f"/api/sessions/{session_id}", via))["seq"]
        follower = Follower([self._webs[via]], Stream(session_id=session_id))
        reading = asyncio.create_task(follower.run())
        try:
            await follower.caught_up(seq)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return follower.stream.entries

    async def _turns(self, session_id: str, via: int) -> list[Receipt]:
        found: list[Receipt] = []
        cursor = ""
        while True:
            page = await self.get("/api/turns", via, session=session_id, cursor=cursor)
            found += msgspec.convert(page["items"], list[Receipt])
            if not (cursor := page["next_cursor"] or ""):
                return found

    async def _insist(self, path: str, body: object, via: int, key: str | None = None) -> Any:
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            with contextlib.suppress(*AWAY):
                answer = await self._webs[via].post(path, json=body, headers=headers)
                if answer.status_code < 300:
                    return answer.json()
                assert answer.status_code == 503, f"{path}: {answer.text}"
            await asyncio.sleep(LOOK_S)


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, str]]:
    """Read server-sent events by the book: fields until an empty line."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            yield fields
            fields = {}


@contextlib.asynccontextmanager
async def client(*gateways: Gateway) -> AsyncIterator[Client]:
    """Be a client for as long as the context lasts."""
    made = Client(gateways, History())
    try:
        yield made
    finally:
        await made.close()
