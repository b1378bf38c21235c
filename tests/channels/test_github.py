"""Comments on GitHub: one for each part, found again when nobody knows, and a refusal that says what to do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from holdfast.channels.github.channel import GithubCarrier
from holdfast.channels.github.client import COMMENTS_PER_PAGE, PAGES_MAX, RATE_LIMIT_S
from holdfast.channels.github.render import COMMENT_MAX_CHARS
from holdfast.core.delivery import REPEAT_LABEL, Delivery
from holdfast.egress import Egress
from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from tests.channels.receiver import Cut, Line, Receiver, Reply, receiving
from tests.engine.world import START, ManualClock
from tests.http_server import Request

TARGET = "github_comment:octo/hello.world#7"
SENT = Delivery(
    id="dlv_1", turn_id="trn_1", session_id="ses_1", target=TARGET, part=1, text="Looks *good*.", created_at=5, due_at=5
)
PATH = "/api/v3/repos/octo/hello.world/issues/7"
NOW_S = START // 1000


def answer(value: Any, status: str = "200 OK", **headers: str) -> Reply:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Reply(status, {"Content-Type": "application/json", **named}, msgspec.json.encode(value))


class Issue:
    """An issue with comments, as its API shows them: the oldest first, page by page."""

    def __init__(self, comments: int = 0) -> None:
        self.bodies = [f"comment {number}" for number in range(comments)]
        self.cuts = 0

    def __call__(self, post: Request) -> Line:
        place = urlsplit(post.path)
        if post.method == "POST" and place.path == f"{PATH}/comments":
            self.bodies.append(post.json["body"])
            if self.cuts:
                self.cuts -= 1
                return Cut()
            return answer({"html_url": self.link(len(self.bodies) - 1)}, "201 Created")
        if place.path == PATH:
            return answer({"comments": len(self.bodies)})
        query = {name: int(value) for name, (value,) in parse_qs(place.query).items()}
        begin = (query["page"] - 1) * query["per_page"]
        shown = range(len(self.bodies))[begin : begin + query["per_page"]]
        return answer([{"body": self.bodies[number], "html_url": self.link(number)} for number in shown])

    def link(self, number: int) -> str:
        return f"https://github.example/octo/hello.world/issues/7#issuecomment-{number}"


@asynccontextmanager
async def a_carrier(there: Receiver, token: str = "ghp_secret") -> AsyncIterator[GithubCarrier]:
    egress = Egress.to(there.url("/api/v3"))
    try:
        yield GithubCarrier(egress, there.url("/api/v3/"), token, "HUB_TOKEN", ManualClock())
    finally:
        await egress.close()


async def test_a_part_becomes_a_comment_that_can_be_found_again() -> None:
    issue = Issue(3)
    async with receiving(by=issue) as there, a_carrier(there) as carrier:
        assert await carrier.find(SENT) is None
        assert await carrier.send(SENT) == issue.link(3)
        assert await carrier.find(SENT) == issue.link(3)
        assert await carrier.find(replace(SENT, id="dlv_2")) is None
        await carrier.send(replace(SENT, id="dlv_2", repeats=1))
    post = next(each for each in there.posts if each.method == "POST")
    assert post.headers["authorization"] == "Bearer ghp_secret"
    assert issue.bodies[3].startswith("Looks *good*.\n")
    assert issue.bodies[4].startswith(f"{REPEAT_LABEL} Looks *good*.\n")


async def test_a_mark_that_somebody_quotes_is_no_comment_of_ours() -> None:
    issue = Issue()
    async with receiving(by=issue) as there, a_carrier(there) as carrier:
        await carrier.send(SENT)
        quoted = "\n".join(f"> {line}" for line in issue.bodies.pop().splitlines())
        issue.bodies.append(f"{quoted}\n\nI do not agree.")
        assert await carrier.find(SENT) is None


async def test_a_comment_that_was_cut_off_is_found_behind_many_others() -> None:
    """D1: where the platform can tell, nobody sees a repeat."""
    issue = Issue(COMMENTS_PER_PAGE * 9)
    issue.cuts = 1
    async with receiving(by=issue) as there, a_carrier(there) as carrier:
        with pytest.raises(OutcomeUnknown):
            await carrier.send(SENT)
        issue.bodies += ["somebody else"] * COMMENTS_PER_PAGE
        there.posts.clear()
        assert await carrier.find(SENT) == issue.link(COMMENTS_PER_PAGE * 9)
        assert len(there.posts) == 3
        assert await carrier.find(replace(SENT, id="dlv_9")) is None
        assert len(there.posts) == 3 + 1 + PAGES_MAX, "all comments were read, however many there are"


def refused(message: str, status: str, **headers: str) -> Reply:
    return answer({"message": message}, status, **headers)


@pytest.mark.parametrize(
    ("reply", "family", "words", "wait_s"),
    [
        (
            refused("Bad credentials", "401 Unauthorized"),
            Rejected,
            "Bad credentials; put a valid token into HUB_TOKEN",
            None,
        ),
        (refused("Resource not accessible", "403 Forbidden"), Rejected, "right to write issues .* octo/hello.world#7", None),
        (refused("Not Found", "404 Not Found"), Rejected, r"whether octo/hello\.world#7 is there", None),
        (refused("Issues are disabled", "410 Gone"), Rejected, "Issues are disabled", None),
        (refused("Validation Failed", "422 Unprocessable"), Rejected, "422 Unprocessable: Validation Failed; see", None),
        (Reply("307 Temporary Redirect", {"Location": "/elsewhere"}), Rejected, "has moved; use the name", None),
        (refused("slow down", "429 Too Many", Retry_After="33"), Unavailable, "rate limit is reached: 429", 33),
        (refused("slow down", "403 Forbidden", Retry_After="61"), Unavailable, "rate limit is reached: 403", 61),
        (refused("You have exceeded a secondary rate limit", "403 Forbidden"), Unavailable, "secondary", RATE_LIMIT_S),
        (refused("slow down", "429 Too Many"), Unavailable, "slow down", RATE_LIMIT_S),
        (
            refused("limit", "403 Forbidden", X_RateLimit_Remaining="0", X_RateLimit_Reset=str(NOW_S + 1_800)),
            Unavailable,
            "rate limit is reached",
            1_800,
        ),
        (
            refused(
                "limit",
                "429 Too Many",
                X_RateLimit_Remaining="0",
                X_RateLimit_Reset=str(NOW_S + 1_800),
                Date=formatdate(NOW_S + 1_700, usegmt=True),
            ),
            Unavailable,
            "rate limit is reached",
            100,
        ),
        (refused("ok so far", "403 Forbidden", X_RateLimit_Remaining="9", X_RateLimit_Reset="1"), Rejected, "403", None),
        (Reply("503 Away"), Unavailable, "cannot answer now: 503", None),
        (Reply("502 Bad Gateway", body=b"<html>"), OutcomeUnknown, "502 Bad Gateway", None),
        (Cut(), OutcomeUnknown, "did not answer", None),
    ],
)
async def test_a_refusal_says_what_to_do(reply: Line, family: Any, words: str, wait_s: float | None) -> None:
    async with receiving(reply) as there, a_carrier(there) as carrier:
        with pytest.raises(family, match=words) as error:
            await carrier.send(SENT)
    assert type(error.value) is family
    assert getattr(error.value, "retry_after_s", None) == wait_s
    assert "ghp_secret" not in str(error.value)


async def test_looking_for_a_comment_is_refused_in_the_same_words() -> None:
    script = [refused("limit", "429 Too Many", Retry_After="5"), refused("Not Found", "404 Not Found"), Reply(body=b"{")]
    async with receiving(*script) as there, a_carrier(there) as carrier:
        for family, words in (
            (Unavailable, "rate limit is reached"),
            (Rejected, "is there"),
            (Unavailable, "cannot be read"),
        ):
            with pytest.raises(family, match=words):
                await carrier.find(SENT)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "",
            "octo",
            "octo/hello",
            "octo/hello#",
            "octo/hello#0",
            "octo/hello#-1",
            "octo/hello#7x",
            "octo/a/b#7",
            "/hello#7",
        ),
        *("octo/..#7", "octo/.#7", "../hello#7", "octo/he llo#7", "octo/hello%2f#7", "octo/hello#7#8", "octo/hello#7\n"),
    ],
)
async def test_a_target_that_names_no_issue_is_refused_when_it_is_named(address: str) -> None:
    async with receiving() as there, a_carrier(there) as carrier:
        with pytest.raises(Rejected, match="OWNER/REPOSITORY#NUMBER"):
            carrier.check(f"github_comment:{address}")
    assert there.connections == 0


async def test_without_a_token_nothing_is_promised() -> None:
    async with receiving() as there, a_carrier(there, token="") as carrier:
        with pytest.raises(Rejected, match="environment variable HUB_TOKEN"):
            carrier.check(TARGET)
        with pytest.raises(Rejected, match="environment variable HUB_TOKEN"):
            await carrier.send(SENT)
    assert there.connections == 0


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 200_000, "☀🌊" * 70_000, "a line\n" * 30_000, "y" * 65_400, "z" * 65_401]
)
async def test_a_long_text_becomes_comments_that_are_not_too_long(text: str) -> None:
    issue = Issue()
    async with receiving(by=issue) as there, a_carrier(there) as carrier:
        parts = carrier.split(text)
        await asyncio.gather(*(carrier.send(replace(SENT, text=each, repeats=1)) for each in parts))
    assert "".join(parts) == text
    assert all(len(body) <= COMMENT_MAX_CHARS for body in issue.bodies)
    assert len(parts) <= len(text) // 30_000 + 1
    if "\n" in text:
        assert all(part.endswith("\n") for part in parts)
