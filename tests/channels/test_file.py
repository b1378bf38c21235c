"""Files as a place to send to: each delivery stands there once, whole, and can be found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.channels.file.channel import FileCarrier
from holdfast.core.delivery import REPEAT_LABEL, Delivery
from holdfast.errors import Rejected, Unavailable

SENT = Delivery(
    id="dlv_1", turn_id="trn_1", session_id="ses_1", target="file:alerts", part=1, text="a\nb", created_at=5, due_at=5
)


async def test_what_is_sent_stands_in_its_file_for_its_owner_only(tmp_path: Path) -> None:
    carrier = FileCarrier(tmp_path / "outbox")
    assert await carrier.find(SENT) is None
    assert await carrier.send(SENT) == "alerts.jsonl"
    await carrier.send(replace(SENT, id="dlv_2", text="c"))
    path = tmp_path / "outbox" / "alerts.jsonl"
    assert [json.loads(line)["text"] for line in path.read_text().splitlines()] == ["a\nb", "c"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert await carrier.find(SENT) == "alerts.jsonl"
    assert await carrier.find(replace(SENT, id="dlv_3")) is None
    # An id that somebody only wrote about is none that was sent.
    await carrier.send(replace(SENT, id="dlv_4", text="dlv_5"))
    assert await carrier.find(replace(SENT, id="dlv_5")) is None


async def test_half_a_line_of_a_write_that_was_cut_off_is_no_delivery_and_harms_none(tmp_path: Path) -> None:
    """D1: what is not whole is not found, so it is sent again; and what follows stands on a line of its own."""
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"id":"dlv_1","at":5,"te')
    carrier = FileCarrier(tmp_path)
    assert await carrier.find(SENT) is None
    await carrier.send(replace(SENT, repeats=1))
    assert json.loads(path.read_text().splitlines()[1])["text"] == f"{REPEAT_LABEL} a\nb"
    assert await carrier.find(SENT) == "alerts.jsonl"


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0b", "x" * 65, "a b"])
async def test_a_target_that_names_no_file_is_refused_for_good(tmp_path: Path, name: str) -> None:
    with pytest.raises(Rejected, match="names no file"):
        FileCarrier(tmp_path).check(f"file:{name}")
    with pytest.raises(Rejected, match="names no file"):
        await FileCarrier(tmp_path).send(replace(SENT, target=f"file:{name}"))


async def test_what_cannot_be_written_now_is_tried_again_later(tmp_path: Path) -> None:
    (tmp_path / "outbox").write_text("in the way")
    with pytest.raises(Unavailable, match="cannot write"):
        await FileCarrier(tmp_path / "outbox").send(SENT)


async def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    """SECURITY 7."""
    (tmp_path / "alerts.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        await FileCarrier(tmp_path).send(SENT)
    assert not (tmp_path / "elsewhere").exists()
