"""Files that are handed in: in the workspace when they are answered, each once, and never anywhere else."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import httpx2
import pytest

from holdfast.agent import uploads
from holdfast.agent.tools.workspace import Workspace
from holdfast.agent.uploads import WorkspaceUploads
from holdfast.config import ToolsConfig
from holdfast.errors import DiskFull, Rejected, Stale
from holdfast.operations.keys import KeyPlan
from holdfast.web.uploads import UPLOAD_MAX
from tests.engine.world import until
from tests.web.house import House, open_house

CONTENT = b"a,b\n1,2\n\x00\xff"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


async def hand_in(house: House, name: str, content: bytes = CONTENT, **headers: str) -> httpx2.Response:
    return await house.web.post("/api/uploads", params={"name": name}, content=content, headers=headers)


async def test_a_file_is_in_the_workspace_once_under_its_own_name(home: Path) -> None:
    async with open_house(home) as house:
        answers = await asyncio.gather(*(hand_in(house, "report.csv") for _ in range(5)))
        assert {each.status_code for each in answers} == {201}
        told = answers[0].json()
        assert told == {"path": f"uploads/{DIGEST[:8]}-report.csv", "name": "report.csv", "bytes": len(CONTENT)}
        assert {each.json()["path"] for each in answers} == {told["path"]}
        folder = home / "workspace" / "uploads"
        assert [each.name for each in folder.iterdir()] == [f"{DIGEST[:8]}-report.csv"]
        assert (home / "workspace" / told["path"]).read_bytes() == CONTENT
        # Whatever it is said to be, it is taken as it is.
        other = await hand_in(house, "other.json", b"{not json", **{"content-type": "application/json"})
        assert (other.status_code, other.json()["bytes"]) == (201, 9)
        # The agent finds it where it is said to be.
        sent = await house.send(await house.session(), f"run: wc -c {told['path']}")
        session_id = sent["session_id"]
        await house.settled(sent["turn_id"])
        items = (await house.get(f"/api/sessions/{session_id}/messages"))["items"]
        assert any(f"{len(CONTENT)} {told['path']}" in (each["result"] or "") for each in items)


async def test_a_name_leads_nowhere_and_a_body_has_a_limit(home: Path) -> None:
    async with open_house(home) as house:
        for name in ("../../out.txt", "/etc/out.txt", "a\0/out.txt", "..\\out.txt", ".out.txt"):
            answer = await hand_in(house, name)
            assert (answer.status_code, answer.json()["path"]) == (201, f"uploads/{DIGEST[:8]}-out.txt"), name
        missing = await house.web.post("/api/uploads", content=CONTENT)
        assert (missing.status_code, missing.json()["error"]["code"]) == (400, "bad_parameter")
        assert (await hand_in(house, "most.bin", bytes(UPLOAD_MAX))).status_code == 201
        large = await hand_in(house, "large.bin", bytes(UPLOAD_MAX + 1))
        assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")


async def test_only_those_whom_the_operator_trusts_with_the_machine_hand_files_in(home: Path) -> None:
    """SECURITY 8: what a tenant sends stays with what is theirs."""
    async with open_house(home, tools=ToolsConfig(trusted_owners=("ann",))) as house:
        made = {name: (await house.services.keys.create(KeyPlan(name=name, owner=name))).key for name in ("ann", "bob")}
        for name, status in (("ann", 201), ("bob", 403)):
            headers = {"authorization": f"Bearer {made[name]}"}
            await until(lambda headers=headers: _is_known(house, headers))
            answer = await hand_in(house, f"{name}.txt", **headers)
            assert answer.status_code == status, answer.text
        assert answer.json()["error"]["code"] == "not_trusted"
        assert "trusted_owners" in answer.json()["error"]["hint"]
        assert (await hand_in(house, "nobody.txt")).status_code == 401
        assert [each.name for each in (home / "workspace" / "uploads").iterdir()] == [f"{DIGEST[:8]}-ann.txt"]


async def _is_known(house: House, headers: dict[str, str]) -> bool:
    return (await house.web.get("/api/me", headers=headers)).status_code == 200


def kept(tmp_path: Path) -> tuple[Path, WorkspaceUploads]:
    root = tmp_path / "workspace"
    root.mkdir()
    return root, WorkspaceUploads(Workspace(root))


async def test_nobody_is_led_out_of_the_workspace(tmp_path: Path) -> None:
    """SECURITY 7"""
    root, here = kept(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (root / "uploads").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Rejected):
        await here.keep("a.txt", CONTENT)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_what_is_there_already_is_never_overwritten(tmp_path: Path) -> None:
    root, here = kept(tmp_path)
    (root / "uploads").mkdir()
    first = root / "uploads" / f"{DIGEST[:8]}-a.txt"
    first.write_bytes(b"another")
    assert (await here.keep("a.txt", CONTENT)).path == f"uploads/{DIGEST[:16]}-a.txt"
    assert first.read_bytes() == b"another"
    (root / "uploads" / f"{DIGEST[:8]}-b.txt").symlink_to(tmp_path / "outside")
    (root / "uploads" / f"{DIGEST[:16]}-b.txt").mkdir()
    assert (await here.keep("b.txt", CONTENT)).path == f"uploads/{DIGEST}-b.txt"
    assert not (tmp_path / "outside").exists()
    (root / "uploads" / f"{DIGEST}-b.txt").write_bytes(b"")
    with pytest.raises(Stale):
        await here.keep("b.txt", CONTENT)
    assert not [each for each in (root / "uploads").iterdir() if each.name.startswith(".")]


async def test_room_is_kept_for_what_is_being_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is the real one; only more of it is kept than there is."""
    root, here = kept(tmp_path)
    monkeypatch.setattr(uploads, "ROOM_KEPT_BYTES", 2**60)
    with pytest.raises(DiskFull):
        await here.keep("a.txt", CONTENT)
    assert list((root / "uploads").iterdir()) == []


async def test_without_room_nothing_is_taken_and_the_sender_is_told_to_come_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "ROOM_KEPT_BYTES", 2**60)
    async with open_house(home) as house:
        answer = await hand_in(house, "a.txt")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "disk_full")
        assert answer.headers["retry-after"]
