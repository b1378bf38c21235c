"""S4: who is let in without a key is known by their user, and being on this machine is not enough."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.app import gateway
from holdfast.app.node import own_gateway
from holdfast.config import Config, ServerConfig
from holdfast.operations.keys import KeyPlan
from holdfast.operations.sessions import Opening
from holdfast.web.application import endpoints
from holdfast.web.events import Streams
from holdfast.web.metrics import Meter
from holdfast.web.users import can_tell, uid_of
from tests.web.house import open_house
from tests.web.somebody import UID, ask, needs_root

ASKED = {"model": "holdfast", "messages": [{"role": "user", "content": "count to 3"}]}


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A home that every user of the machine can walk into."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
async def test_another_user_gets_nothing_without_a_key_on_any_route(home: Path) -> None:
    async with open_house(home) as house:
        session = await house.services.sessions.open(Opening())
        for endpoint in endpoints(Streams(asyncio.Event()), Meter()):
            if endpoint.scope is None:
                continue
            path = endpoint.path.replace("{id:path}", "holdfast").replace("{id}", session.id).replace("{number}", "0")
            answer = await ask(house.url, endpoint.method, path, {})
            assert answer.status == 401, (endpoint.method, path, answer)
            assert "holdfast keys create" in str(answer.body)
        for shown in ("Bearer none", "Bearer hf_never-made", ""):
            assert (await ask(house.url, "GET", "/api/sessions", authorization=shown)).status == 401
        # What holds nothing is still there: the page, the way to sign in, and who watches over a gateway.
        for path in ("/", "/health", "/ready", "/api/sign-in", "/openapi.json"):
            assert (await ask(house.url, "GET", path)).status == 200
        # With a key they are whoever the key is for.
        key = (await house.services.keys.create(KeyPlan(name="desk", owner="support"))).key
        assert (await ask(house.url, "GET", "/api/me", authorization=f"Bearer {key}")).body["owner"] == "support"


@needs_root
async def test_the_same_user_needs_no_key_to_talk_and_cannot_consent_stop_or_make_keys(home: Path) -> None:
    async with open_house(home) as house:
        spoken = await ask(house.url, "POST", "/v1/chat/completions", ASKED, uid=os.geteuid(), authorization="Bearer none")
        assert spoken.body["choices"][0]["message"]["content"].endswith("1 2 3.")
        for method, path in (("POST", "/api/keys"), ("POST", "/api/stop"), ("PATCH", "/api/settings"), ("GET", "/api/keys")):
            refused = await ask(house.url, method, path, {}, uid=os.geteuid())
            assert (refused.status, refused.body["error"]["code"]) == (403, "operator_only"), path


@needs_root
async def test_where_the_operator_lets_them_other_users_have_an_owner_of_their_own(home: Path) -> None:
    async with open_house(home, guests="own") as house:
        mine = await house.session(title="mine")
        assert (await ask(house.url, "GET", "/api/me")).body == {"owner": f"guest#{UID}", "scopes": ["api"], "how": "guest"}
        assert (await ask(house.url, "GET", f"/api/sessions/{mine}")).status == 404
        theirs = (await ask(house.url, "POST", "/api/sessions", {})).body["id"]
        assert [each["id"] for each in (await ask(house.url, "GET", "/api/sessions")).body["items"]] == [theirs]
        assert (await house.web.get(f"/api/sessions/{theirs}")).status_code == 404
        # Another one is somebody else again.
        assert (await ask(house.url, "GET", f"/api/sessions/{theirs}", uid=UID + 1)).status == 404
        # None of the tools that touch the machine is offered, and no file of theirs gets there.
        upload = await ask(house.url, "POST", "/api/uploads?name=a.txt", {})
        assert (upload.status, upload.body["error"]["code"]) == (403, "not_trusted")
        sent = await ask(house.url, "POST", f"/api/sessions/{theirs}/messages", {"text": "run: touch here"})
        assert sent.status == 202
        for method, path in (("POST", "/api/keys"), ("POST", "/api/stop"), ("GET", "/api/settings")):
            assert (await ask(house.url, method, path, {})).status == 403


@needs_root
async def test_the_socket_is_its_owners_even_if_its_file_lets_others_in(reachable: Path) -> None:
    async with open_house(reachable / "home") as house:
        house.home.chmod(0o755)
        socket_file = house.home / "gateway.sock"
        socket_file.chmod(0o666)
        assert (await ask(socket_file, "GET", "/api/keys", uid=os.geteuid())).status == 200
        for method, path in (("GET", "/api/keys"), ("POST", "/api/stop"), ("GET", "/api/sessions")):
            assert (await ask(socket_file, method, path, {})).status == 401


def test_the_kernel_knows_whose_an_open_connection_is_and_nothing_else_is_believed() -> None:
    """A socket that is closing is not known any more, and the kernel would say that it was root's."""
    assert can_tell()
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((host, 0), family=family) as listener:
            near = socket.create_connection(listener.getsockname()[:2])
            far, _ = listener.accept()
            with far:
                assert uid_of(far) == os.geteuid()
                near.close()
                assert uid_of(far) is None
    near, far = socket.socketpair()
    with near, far:
        assert uid_of(far) == os.geteuid()


async def test_where_users_cannot_be_told_apart_a_key_is_made_for_programs_once(home: Path) -> None:
    async with own_gateway(Config(), home) as services:
        key = await gateway._programs_key(services.keys, ServerConfig(), closed=False)
        (made,) = (await services.keys.list()).items
        assert (made.owner, made.scopes, key.startswith(made.prefix)) == ("local", ("api",), True)
        assert await gateway._programs_key(services.keys, ServerConfig(), closed=True) == ""
    async with open_house(home) as house:
        # On this machine they can be told apart, so nothing was printed; the key counts all the same.
        assert (house.log.key, (await house.web.get("/api/me")).status_code) == ("", 401)
        assert (await house.web.get("/api/me", headers={"authorization": f"Bearer {key}"})).json()["owner"] == "local"


@pytest.mark.parametrize("server", [ServerConfig(api_key="x" * 20), ServerConfig(password="a long enough one")])
async def test_no_key_is_made_where_there_is_a_way_in(server: ServerConfig) -> None:
    assert await gateway._programs_key(None, server, closed=False) == ""  # type: ignore[arg-type]  # It is not asked.
