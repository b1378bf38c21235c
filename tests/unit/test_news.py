"""What the operator reads of news in the home chat: foreign text is shown as it is."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from holdfast.core.news import DeadLetter, FailedJob, MissedJob, News, Outage
from holdfast.ids import DeliveryId, TurnId

HOSTILE = "[pay](http://evil.example) **now** `x` <b>y</b>"
NEWS = {
    "an error of an account": News(outages=[Outage(account="a", problem=HOSTILE, since=0, is_over=False, was_told=True)]),
    "the name of a missed job": News(missed=[MissedJob(name=HOSTILE, count=1, last_instant=0)]),
    "the name of a failed job": News(failed=[FailedJob(name=HOSTILE, instant=0, turn_id=TurnId("trn_1"), error="x")]),
    "the error of a failed job": News(failed=[FailedJob(name="j", instant=0, turn_id=TurnId("trn_1"), error=HOSTILE)]),
    "a dead letter": News(dead_letters=[DeadLetter(id=DeliveryId("dlv_1"), target=HOSTILE, error=HOSTILE)]),
}


@pytest.mark.parametrize("news", NEWS.values(), ids=NEWS.keys())
def test_foreign_text_is_no_markup(news: News) -> None:
    html = MarkdownIt("commonmark", {"html": True}).render(news.text(60_000))
    assert "href" not in html
    assert "<strong>" not in html
    assert "<b>" not in html
    assert "**now**" in html


def test_a_plain_text_stays_as_it_is() -> None:
    news = News(
        outages=[Outage(account="telegram", problem="the token is not valid", since=0, is_over=False, was_told=True)]
    )
    assert news.text(60_000) == "telegram has received no messages for 1 minute: the token is not valid"
