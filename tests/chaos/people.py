"""The clients: each does one kind of thing over and over, and insists on an answer to everything that it asks."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

from holdfast.channels.webhook.signatures import Scheme, sign
from tests.blackbox.client import AWAY, Client, Follower
from tests.blackbox.gateway import Gateway
from tests.blackbox.history import Acknowledgement, Entry, History, Item, Poll, Receipt, Stream
from tests.chaos.verdict import Reply
from tests.models.servers import counted
from tests.webhooks.sender import SECRET, now_ms

RETRY_S = (0.05, 0.4)
LOOK_S = (0.3, 1.0)
PAUSE_S = (0.1, 1.0)
INSIST_S = 150.0
RATE = 40
CHAT = "/v1/chat/completions"
STREAMS_MAX = 4
SCHEMES = (Scheme.STANDARD, Scheme.GITHUB, Scheme.HMAC)
OVER = ("completed", "failed", "cancelled")
# Not now: the client asks again.  409 is an answer on its way, 401 a signature whose time a wrong clock does not believe.
LATER = (401, 409, 429, 502, 503)


# What the model does before it answers: use a tool that has an effect, ask a person, hand a task on, start a command.
FIRST = (
    'call probe_effectful {"word": "WORD"} | ',
    'call probe_effectful {"word": "WORD"} | ',
    'call ask_user {"question": "Which colour?"} | ',
    'call delegate_task {"goal": "script: stream 20 at 40"} | ',
    'call terminal {"command": "sleep 0.5 && echo WORD", "background": true, "notify_on_complete": true} | ',
)


class Unanswered(Exception):
    """A request got no answer for a long time although no fault was active."""


@dataclass(kw_only=True)
class Notes:
    """What the clients have written down beside the history of the sessions.

    `delivered` are the inputs whose answer goes to the receiver, `alone` those with a session of their own and how that
    session ends, `cancels` the turns that a client wanted to cancel, `jobs` when each is due, and `odd` the answers that no
    client can make sense of.
    """

    delivered: set[str] = field(default_factory=set[str])
    alone: dict[str, str] = field(default_factory=dict[str, str])
    cancels: set[str] = field(default_factory=set[str])
    replies: list[Reply] = field(default_factory=list[Reply])
    jobs: dict[str, float] = field(default_factory=dict[str, float])
    odd: list[str] = field(default_factory=list[str])
    requests: int = 0
    retries: int = 0


class Caller(Client):
    """Everything that clients ask, of any node, again and again until it is answered."""

    def __init__(self, gateways: Sequence[Gateway], mark: str, chance: random.Random) -> None:
        super().__init__(gateways, History(), mark)
        self.notes = Notes()
        self.chance = chance
        # When the last fault was over: while there are faults, every try of a request may meet one.
        self.calm_at = math.inf
        self._nodes = itertools.cycle(range(len(gateways)))

    def message(self, script: str, words: int) -> tuple[str, str]:
        """Return the next nonce, and a message whose answer is known in advance."""
        nonce = self.nonce()
        text = self.history.sent[nonce] = f"{nonce} script: {script}count {words} at {RATE}"
        self.history.answers[nonce] = counted(nonce, words)
        return nonce, text

    def acknowledge(self, nonce: str, told: Any) -> Acknowledgement:
        made = Acknowledgement(nonce=nonce, session_id=told["session_id"], turn_id=told["turn_id"])
        self.history.acknowledged.append(made)
        return made

    async def insist(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        final: Sequence[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Ask one node after the other until one answers with success, or with a status that is `final`."""
        return await self._insist_with(lambda: (path, {"json": body, "headers": dict(headers or {})}), method, final)

    async def deliver(self, route: str, body: bytes, scheme: Scheme, nonce: str) -> httpx2.Response:
        """Send a webhook until it is taken; each try is signed anew."""

        def request() -> tuple[str, dict[str, Any]]:
            headers = {**sign(scheme, body, SECRET, now_ms(), nonce), "Content-Type": "application/json"}
            return f"/webhooks/{route}", {"content": body, "headers": headers}

        return await self._insist_with(request, "POST", ())

    def watch(self, session_id: str) -> Follower:
        """Follow a session at any node."""
        stream = Stream(session_id=session_id)
        self.history.streams.append(stream)
        first = next(self._nodes)
        follower = Follower(self._webs[first:] + self._webs[:first], stream)
        self.come_back(follower)
        return follower

    async def comes_to_rest(self, turn_id: str, over: asyncio.Event) -> Receipt | None:
        """Look at a turn until it is final; None when the round is over before."""
        while not over.is_set():
            answer = await self.insist("GET", f"/api/turns/{turn_id}", final=(404,))
            if answer.status_code == 404:
                return None
            receipt = msgspec.convert(answer.json(), Receipt)
            self.history.receipts.append(receipt)
            if receipt.state in OVER:
                return receipt
            if receipt.state == "waiting":
                await self.answer_question(turn_id)
            await asyncio.sleep(self.chance.uniform(*LOOK_S))
        return None

    async def answer_question(self, turn_id: str) -> None:
        await self.insist("POST", f"/api/turns/{turn_id}/answer", {"text": "blue"}, final=(404, 409))

    async def read(self, session_id: str) -> Poll:
        """Read a transcript as it is now."""
        page = (await self.insist("GET", f"/api/sessions/{session_id}/messages?limit=200")).json()
        items = msgspec.convert(page["items"], list[Item])
        self.history.polls.append(found := Poll(session_id=session_id, seq=page["seq"], items=items))
        return found

    async def look(self, session_id: str) -> tuple[list[Entry], Poll, list[Receipt]]:
        """Read journal, transcript and receipts of a session that is at rest."""
        journal, poll = await self._look(session_id, next(self._nodes))
        return journal, poll, await self._turns(session_id, next(self._nodes))

    async def poll(self, session_id: str, via: int = 0) -> Poll:
        return await self.read(session_id)

    async def turn(self, turn_id: str, via: int = 0) -> Receipt:
        receipt = msgspec.convert((await self.insist("GET", f"/api/turns/{turn_id}")).json(), Receipt)
        self.history.receipts.append(receipt)
        return receipt

    async def _insist_with(self, request: Any, method: str, final: Sequence[int]) -> httpx2.Response:
        began = time.monotonic()
        said = "nothing"
        while time.monotonic() < max(began, self.calm_at) + INSIST_S:
            path, how = request()
            self.notes.requests += 1
            try:
                answer = await self._webs[next(self._nodes)].request(method, path, **how)
            except AWAY as error:
                said = repr(error)
            else:
                # A gateway that says not to ask again has decided.
                decided = answer.status_code in final or answer.headers.get("x-should-retry") == "false"
                if answer.is_success or decided:
                    return answer
                said = f"{answer.status_code} {answer.text[:300]}"
                if answer.status_code not in LATER:
                    self.notes.odd.append(f"{method} {path} was answered {said}")
            self.notes.retries += 1
            await asyncio.sleep(self.chance.uniform(*RETRY_S))
        raise Unanswered(f"{method} {request()[0]} got no answer for {INSIST_S:.0f} s; the last was {said}")

    async def _insist(self, path: str, body: object, via: int, key: str | None = None) -> Any:
        return (await self.insist("POST", path, body, headers={"Idempotency-Key": key} if key else {})).json()


async def converse(caller: Caller, over: asyncio.Event) -> None:
    """Keep a conversation: follow it, write, repeat a message at times, read along, cancel, begin another one."""
    chance, session_id = caller.chance, ""
    while not over.is_set():
        if not session_id or chance.random() < 0.1:
            session_id = await caller.session()
            caller.watch(session_id)
            caller.watch(session_id)
        first = chance.choice(FIRST) if chance.random() < 0.3 else ""
        nonce, text = caller.message(first.replace("WORD", f"effect-{caller.nonce()}"), chance.choice([3, 10, 30, 60]))
        path = f"/api/sessions/{session_id}/messages"
        ack = await _send(caller, path, {"text": text}, nonce)
        if ack.session_id != session_id:
            # The conversation was suspended, and this one follows it.
            session_id = ack.session_id
            caller.watch(session_id)
        if chance.random() < 0.15:
            await _send(caller, path, {"text": text}, nonce)
        await _look_after(caller, ack, over)


async def _send(caller: Caller, path: str, body: object, nonce: str) -> Acknowledgement:
    answer = await caller.insist("POST", path, body, headers={"Idempotency-Key": nonce})
    return caller.acknowledge(nonce, answer.json())


async def _look_after(caller: Caller, ack: Acknowledgement, over: asyncio.Event) -> None:
    chance = caller.chance
    if chance.random() < 0.06:
        await asyncio.sleep(chance.uniform(0, 0.5))
        caller.notes.cancels.add(ack.turn_id)
        await caller.insist("POST", f"/api/turns/{ack.turn_id}/cancel", {}, final=(409,))
    if chance.random() < 0.3:
        await caller.read(ack.session_id)
    if chance.random() < 0.7:
        await caller.comes_to_rest(ack.turn_id, over)
    await asyncio.sleep(chance.uniform(*PAUSE_S))


async def hand_in(caller: Caller, over: asyncio.Event) -> None:
    """Hand in runs that go on by themselves, and follow them."""
    while not over.is_set():
        nonce, text = caller.message("", caller.chance.choice([5, 20, 50]))
        answer = await caller.insist("POST", "/v1/runs", {"input": text}, headers={"Idempotency-Key": nonce})
        told = answer.json()
        ack = caller.acknowledge(nonce, {**told, "turn_id": told["run_id"]})
        caller.notes.alone[nonce] = "api_complete"
        caller.watch(ack.session_id)
        if caller.chance.random() < 0.5:
            await caller.comes_to_rest(ack.turn_id, over)
        await asyncio.sleep(caller.chance.uniform(*PAUSE_S))


async def post(caller: Caller, over: asyncio.Event) -> None:
    """Send signed webhooks whose answers go to the receiver; at times, one that was taken long ago once more."""
    taken: list[tuple[str, bytes, Scheme, str]] = []
    while not over.is_set():
        nonce, text = caller.message("", caller.chance.choice([2, 8, 25]))
        route = "agent" if caller.chance.random() < 0.7 else "plain"
        if route == "plain":
            # It is its own answer.
            caller.history.answers[nonce] = text
        sent = (route, json.dumps({"text": text}).encode(), caller.chance.choice(SCHEMES), nonce)
        caller.acknowledge(nonce, (await caller.deliver(*sent)).json())
        caller.notes.delivered.add(nonce)
        caller.notes.alone[nonce] = "webhook_complete"
        taken.append(sent)
        if caller.chance.random() < 0.2:
            again = caller.chance.choice(taken)
            caller.acknowledge(again[3], (await caller.deliver(*again)).json())
        await asyncio.sleep(caller.chance.uniform(*PAUSE_S))


async def complete(caller: Caller, over: asyncio.Event) -> None:
    """Ask as programs do that speak to OpenAI, with a key, until the answer is there; at times for the same one again."""
    while not over.is_set():
        nonce, text = caller.message("", caller.chance.choice([3, 15, 40]))
        body = {"model": "holdfast", "messages": [{"role": "user", "content": text}]}
        for _ in range(2 if caller.chance.random() < 0.2 else 1):
            ask = _streamed if caller.chance.random() < 0.5 else _completed
            said = await ask(caller, body, nonce)
            if said is None:
                break
            caller.notes.alone[nonce] = "api_complete"
            caller.notes.replies.append(Reply(nonce=nonce, text=said))
        await asyncio.sleep(caller.chance.uniform(*PAUSE_S))


async def _completed(caller: Caller, body: Mapping[str, object], nonce: str) -> str | None:
    """Return the answer; None where the gateway says that there will be none."""
    while True:
        answer = await caller.insist("POST", CHAT, body, headers={"Idempotency-Key": nonce}, final=(502,))
        if answer.is_success:
            _named(caller, nonce, answer)
            return answer.json()["choices"][0]["message"]["content"]
        if answer.headers.get("x-should-retry") == "false":
            turn = await caller.turn(answer.json()["error"]["turn_id"])
            caller.acknowledge(nonce, {"session_id": turn.session_id, "turn_id": turn.id})
            return None
        await asyncio.sleep(caller.chance.uniform(*RETRY_S))


async def _streamed(caller: Caller, body: Mapping[str, object], nonce: str) -> str | None:
    """Return what a stream says that has come to its end; where all break off, what is said without a stream."""
    asked = {**body, "stream": True}
    for _ in range(STREAMS_MAX):
        answer = await caller.insist("POST", CHAT, asked, headers={"Idempotency-Key": nonce}, final=(409, 502))
        said = _joined(answer.text)
        if answer.is_success and said is not None:
            _named(caller, nonce, answer)
            return said
        await asyncio.sleep(caller.chance.uniform(*LOOK_S))
    return await _completed(caller, body, nonce)


def _named(caller: Caller, nonce: str, answer: httpx2.Response) -> None:
    told = {"session_id": answer.headers["x-session-id"], "turn_id": answer.headers["x-turn-id"]}
    caller.acknowledge(nonce, told)


def _joined(stream: str) -> str | None:
    """Return the text of a stream of chunks that has come to its end without an error."""
    events = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        return None
    chunks = [json.loads(each) for each in events[:-1]]
    if any("error" in chunk for chunk in chunks):
        return None
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


async def schedule(caller: Caller, over: asyncio.Event) -> None:
    """Add jobs that are due once, a few seconds later."""
    while not over.is_set():
        nonce, text = caller.message("", 5)
        due = int(time.time()) + 4
        plan = {"name": nonce, "schedule": f"at {datetime.fromtimestamp(due, UTC).isoformat()}", "prompt": text}
        answer = await caller.insist("POST", "/api/jobs", plan, final=(400, 422))
        saved = answer.is_success or (await caller.insist("GET", f"/api/jobs/{nonce}", final=(404,))).is_success
        if saved:
            caller.notes.jobs[nonce] = due
        await asyncio.sleep(caller.chance.uniform(1, 3))


CAST = (*[converse] * 6, *[hand_in] * 2, *[post] * 3, *[complete] * 3, schedule)
