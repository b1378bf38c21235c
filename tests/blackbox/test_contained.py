"""What a persuaded model gets out of its commands, against a real gateway with bubblewrap and with our own launcher."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.sandbox import SandboxKind
from tests.blackbox.client import client
from tests.blackbox.gateway import ANEW
from tests.blackbox.models import workshop
from tests.blackbox.test_policy import asked, call
from tests.machine import CONFINING, PATH
from tests.tools import attacks

SECRET = "the-treasure-of-the-person"
# Each prints what it finds; none of it may be the secret, and none may get an answer of the gateway.
SCRIPT = """
cat "$1/secret" "$1"/../person/secret 2>&1
grep -rs 'trea[s]ure' "$1/.."
for each in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $each; done 2>/dev/null | grep -a a-key-for-nobody
python3 - "$1" "$2" <<'END'
import os, socket, sys
home, port = sys.argv[1], int(sys.argv[2])
for family, place in ((socket.AF_UNIX, home + "/gateway.sock"), (socket.AF_INET, ("127.0.0.1", port))):
    print("reached" if socket.socket(family).connect_ex(place) == 0 else "kept out")
proxy = socket.create_connection(("127.0.0.1", 3128))
proxy.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\\r\\n\\r\\n" % port)
print(proxy.makefile().read())
os.mkfifo("AGENTS.md")
END
echo end
"""


@pytest.mark.parametrize("kind", CONFINING)
async def test_a_hostile_command_runs_unasked_and_gets_nowhere(kind: SandboxKind) -> None:
    """S1, S2, S3, S4: it sees neither the person's files nor the gateway, and leaves nothing that holds the next turn."""
    with workshop(tools__terminal__sandbox="on") as shop:
        gateway = shop.gateway
        gateway.environment["PATH"] = PATH if kind is SandboxKind.BUBBLEWRAP else os.environ["PATH"]
        # Its environment stands in /proc.
        gateway.command = ANEW
        # Not even the operator's word opens it: the proxy has the gateway's user, which needs no key.
        gateway.settings["tools__terminal__hosts"] = f'["127.0.0.1:{gateway.port}"]'
        await gateway.start()
        workspace = gateway.home / "workspace"
        (gateway.home / "secret").write_text(SECRET)
        Path(gateway.home.parent, "person").mkdir()
        Path(gateway.home.parent, "person", "secret").write_text(SECRET)
        (workspace / "hostile.sh").write_text(SCRIPT)
        async with client(gateway) as somebody:
            assert kind.value.replace("bubblewrap", "bwrap") in await gateway.run("status")
            command = f"sh hostile.sh {gateway.home} {gateway.port}"
            turn = await somebody.send(await somebody.session(), f"script: {call('terminal', command=command)} | result")
            await somebody.answered(turn)
            said = await somebody.said(turn)
            assert said.count("kept out") == 2, said
            assert "this is the gateway itself" in said
            assert "end" in said
            assert SECRET not in said
            assert "a-key-for-nobody" not in said
            # The pipe that it has left in the place of AGENTS.md holds nobody up.
            for _ in range(8):
                await somebody.answered(await somebody.send(await somebody.session(), "script: say well"))
            assert not await asked(somebody)


@pytest.mark.parametrize("kind", CONFINING)
async def test_what_once_ran_as_the_operator_runs_in_the_sandbox_alone(kind: SandboxKind) -> None:
    """S1: with a sandbox each of the seventeen may run unasked, and what it runs has the workspace and nothing else."""
    with workshop(tools__terminal__sandbox="on") as shop:
        gateway = shop.gateway
        gateway.environment["PATH"] = PATH if kind is SandboxKind.BUBBLEWRAP else os.environ["PATH"]
        await gateway.start()
        workspace = gateway.home / "workspace"
        attacks.prepare(workspace)
        (gateway.home / "secret").unlink()
        outside = gateway.home.parent / "escaped"
        (workspace / "evil.sh").write_text(f"#!/bin/sh\ntouch {attacks.PROOF}\ntouch {outside} {gateway.home}/escaped\n")
        async with client(gateway) as somebody:
            for command in attacks.ONCE_UNASKED:
                script = f"script: {call('terminal', command=command, timeout=20)} | result"
                await somebody.answered(await somebody.send(await somebody.session(), script))
            assert not await asked(somebody)
        # Some of them still do what they did, which is why their text must not count.
        assert (workspace / attacks.PROOF).exists()
        assert not outside.exists()
        assert not (gateway.home / "escaped").exists()
