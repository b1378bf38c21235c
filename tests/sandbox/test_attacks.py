"""Every attack of the corpus in every mechanism of this machine, with one assertion: nothing outside has changed."""

from __future__ import annotations

import asyncio
import os
import socket
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.sandbox import Sandbox, SandboxKind
from holdfast.sandbox.proxy import HostRules, Network
from tests.machine import CONFINING, LANDLOCK, PATH
from tests.sandbox.arena import MARKER, Arena, arena
from tests.sandbox.attacks import CORPUS, FURTHER, POWERS, REACHES, shell

KINDS = [*CONFINING, LANDLOCK]
NOBODY = 65534


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    # Tests that do not find bubblewrap have another PATH, of links below /tmp, which a sandbox does not see.
    with arena(tmp_path_factory.mktemp("arena"), {"PATH": PATH}) as made:
        yield made


@pytest.fixture(scope="module")
def ground_for_everybody() -> Iterator[Arena]:
    """An arena that an ordinary user can reach, and would own."""
    if os.getuid() != 0:
        pytest.skip("every other test here ran as an ordinary user")
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        with arena(Path(name), {"PATH": "/usr/bin:/bin"}) as made:
            yield made


@pytest.fixture
def place(ground: Arena) -> Iterator[Arena]:
    yield ground
    ground.clean()


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 150


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CORPUS)
async def test_an_attack_has_no_effect_outside_the_workspace(kind: SandboxKind, name: str, place: Arena) -> None:
    """SECURITY 10, S1, S3: a hostile command changes nothing, reads nothing private and reaches nobody."""
    attack = CORPUS[name]
    if kind in attack.weak:
        pytest.skip("this mechanism does not stop it, and so does not claim to confine")
    place.check(place.run(await place.box(kind), attack))


@pytest.mark.parametrize("kind", CONFINING)
@pytest.mark.parametrize("name", REACHES)
async def test_an_attack_on_the_network_reaches_nobody_through_the_proxy_either(
    kind: SandboxKind, name: str, place: Arena
) -> None:
    """SECURITY 6, S3: with a proxy and no host allowed there is still no way out."""
    with TemporaryDirectory() as folder:
        async with Network(Path(folder)).opened(HostRules()) as access:
            done = await asyncio.to_thread(place.run, await place.box(kind), REACHES[name], access)
    place.check(done)


@pytest.mark.parametrize("kind", CONFINING)
@pytest.mark.parametrize("name", [*POWERS, *FURTHER])
async def test_an_ordinary_user_is_held_as_root_is(kind: SandboxKind, name: str, ground_for_everybody: Arena) -> None:
    """SECURITY 10: nothing of it needs root."""
    place = ground_for_everybody
    place.check(place.run(await place.box(kind), {**POWERS, **FURTHER}[name], user=NOBODY))
    place.clean()


@pytest.mark.parametrize("name", [name for name, attack in CORPUS.items() if attack.works_outside])
def test_without_a_sandbox_the_same_attack_is_noticed(name: str, tmp_path: Path) -> None:
    """The assertion sees what it is there for."""
    with arena(tmp_path) as place:
        bare = Sandbox(description="off", profile=place.profile())
        done = place.run(bare, CORPUS[name])
        with pytest.raises(AssertionError):
            place.check(done, patience_s=0)


@pytest.mark.parametrize("kind", CONFINING)
async def test_a_command_cannot_take_the_port_of_the_gateway(kind: SandboxKind, place: Arena) -> None:
    """S2: what listens in a sandbox listens there alone."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    script = (
        f"python3 -c \"import socket; socket.create_server(('0.0.0.0', {port})); print('listens', flush=True); input()\""
    )
    argv, variables = (await place.box(kind)).wrap(["/bin/sh", "-c", script], place.workspace)
    running = await asyncio.create_subprocess_exec(
        *argv, stdin=PIPE, stdout=PIPE, env={**os.environ, **place.programs, **variables}, start_new_session=True
    )
    assert running.stdout
    assert await running.stdout.readline() == b"listens\n"
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) != 0
    with socket.create_server(("127.0.0.1", port)):
        pass
    await running.communicate(b"\n")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_command_works_in_spite_of_it_all(kind: SandboxKind, place: Arena) -> None:
    """Walls that nothing gets through would be easy."""
    script = 'echo x > own && mkdir d && mv own d/ && cat d/own && chmod +x d/own && touch "$HOME/.cache-of-mine"'
    done = place.run(await place.box(kind), shell(script))
    assert (done.returncode, b"x\n" in done.stdout, MARKER.encode() in done.stdout) == (0, True, False), done.stdout
    place.check(done)
