"""The sandbox, with the real bubblewrap: what a command can do in it, what it cannot, and what is so without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.agent.sandbox import Sandbox, scrubbed
from holdfast.errors import ConfigInvalid


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return furnished(tmp_path)


def furnished(tmp_path: Path) -> Path:
    """Make the home of a gateway, with its workspace in it, and a person's folder with secrets beside it."""
    (tmp_path / "gateway" / "workspace").mkdir(parents=True)
    (tmp_path / "gateway" / "holdfast.toml").write_text("secret")
    (tmp_path / "person" / ".ssh").mkdir(parents=True)
    (tmp_path / "person" / ".ssh" / "id_rsa").write_text("secret")
    (tmp_path / "person" / ".netrc").write_text("secret")
    (tmp_path / "person" / "notes.txt").write_text("notes")
    return tmp_path


async def sandbox(home: Path, workspace: str = "gateway/workspace") -> Sandbox:
    return await Sandbox.find("on", home / workspace, hidden=[home / "gateway"], user_home=home / "person")


def run(box: Sandbox, script: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
    return started(box.wrap(["/bin/sh", "-c", script], box.workspace), user)


def started(argv: list[str], user: int | None = None) -> subprocess.CompletedProcess[str]:
    environment = scrubbed(os.environ)
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=30, env=environment, start_new_session=True, user=user, group=user
    )


@pytest.mark.sandbox
async def test_a_command_works_in_the_workspace(home: Path) -> None:
    """SECURITY 10: what is written there stays, and its exit status comes back."""
    box = await sandbox(home)
    assert box.description.startswith("on: ")
    done = run(box, "pwd; mkdir a && echo hello > a/file; exit 7")
    assert (done.returncode, done.stdout) == (7, f"{home}/gateway/workspace\n")
    assert (home / "gateway/workspace/a/file").read_text() == "hello\n"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "place", ["/etc/holdfast-test", "/usr/holdfast-test", "/proc/sys/kernel/core_pattern", "/var/holdfast-test"]
)
async def test_a_command_cannot_write_outside(home: Path, place: str) -> None:
    """SECURITY 10: not even root, and not the settings of the kernel."""
    done = run(await sandbox(home), f": >> {place}")
    assert done.returncode != 0
    assert "ead-only" in done.stderr or "denied" in done.stderr
    assert place.startswith("/proc") or not Path(place).exists()


@pytest.mark.sandbox
@pytest.mark.parametrize("place", ["gateway/holdfast.toml", "person/.ssh/id_rsa", "person/.netrc"])
@pytest.mark.parametrize("workspace", ["gateway/workspace", "person"])
async def test_a_command_finds_no_secrets(home: Path, place: str, workspace: str) -> None:
    """SECURITY 10: also where the workspace lies in what is hidden, and where the secrets lie in the workspace."""
    box = await sandbox(home, workspace)
    done = run(box, f"cat {home / place}; ls -A {(home / place).parent}")
    assert "secret" not in done.stdout
    assert (home / place).read_text() == "secret"


@pytest.mark.sandbox
async def test_secrets_that_appear_later_are_hidden_as_well(home: Path) -> None:
    """SECURITY 10: the walls are put up for each command anew."""
    box = await sandbox(home, "person")
    (home / "person" / ".aws").mkdir()
    (home / "person" / ".aws" / "credentials").write_text("secret")
    assert "secret" not in run(box, "cat .aws/credentials .aws/*").stdout
    assert run(box, "cat notes.txt").stdout == "notes"


@pytest.mark.sandbox
async def test_a_command_sees_no_other_process_and_no_foreign_file_in_tmp(home: Path) -> None:
    """SECURITY 10: process ids, temporary files and the sockets of daemons are its own."""
    box = await sandbox(home)
    (home / "foreign").write_text("here")
    done = run(box, f"ls /proc | grep -c '^[0-9]'; cat {home}/foreign; ls -A /run; kill -0 {os.getpid()} || echo alone")
    count, *rest = done.stdout.split()
    assert int(count) < 10
    assert "here" not in rest
    assert "alone" in rest


@pytest.mark.sandbox
async def test_what_a_command_leaves_behind_ends_with_it(home: Path) -> None:
    """R10: a group dies together: the pipe that the child holds is closed when the command ends."""
    box = await sandbox(home)
    done = run(box, "sleep 600 & echo started")
    assert done.stdout == "started\n"


@pytest.mark.sandbox
async def test_the_sandbox_ends_with_whoever_keeps_it(home: Path) -> None:
    """R10: the keeper stands outside; when it is killed, nothing runs on unseen."""
    box = await sandbox(home)
    argv = box.wrap(["/bin/sh", "-c", "echo ready; exec sleep 600"], box.workspace)
    keeper = (
        "import os, signal, subprocess, sys\n"
        f"child = subprocess.Popen({argv!r}, stdout=subprocess.PIPE, start_new_session=True)\n"
        "child.stdout.readline()\n"
        "print('ready', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # Whoever still held the error stream would keep this waiting until its time is up.
    done = started([sys.executable, "-c", keeper])
    assert (done.returncode, done.stdout) == (-9, "ready\n")


@pytest.mark.sandbox
async def test_an_ordinary_user_gets_the_same_walls() -> None:
    """SECURITY 10: nothing of it needs root."""
    if os.getuid() != 0:
        pytest.skip("every other test here ran as an ordinary user")
    with TemporaryDirectory() as place:
        home = furnished(Path(place))
        home.chmod(0o755)
        box = await sandbox(home)
        box.workspace.chmod(0o777)
        script = f"id -u; echo x > file; cat {home}/person/.ssh/id_rsa; : >> /etc/holdfast-test"
        done = run(box, script, user=65534)
        assert (done.stdout, (box.workspace / "file").read_text()) == ("65534\n", "x\n"), done.stderr


async def test_off_is_off(home: Path) -> None:
    """SECURITY 10: an explicit choice, and shown."""
    box = await Sandbox.find("off", home)
    assert not box.is_on
    assert box.description == 'off: tools.terminal.sandbox is "off"'
    assert not box.missing
    assert box.wrap(["ls", "-l"], home) == ["ls", "-l"]


async def test_without_bubblewrap_auto_says_so_and_on_refuses(home: Path) -> None:
    """SECURITY 10: a fallback has a visible reason; a requirement ends the start with what to install."""
    box = await Sandbox.find("auto", home)
    assert not box.is_on
    assert box.description.startswith("off, and code of the workspace is asked about: bwrap is not installed; to have")
    assert box.missing
    with pytest.raises(ConfigInvalid, match=r"tools\.terminal\.sandbox.*install bubblewrap"):
        await Sandbox.find("on", home)


async def test_a_bubblewrap_that_does_not_work_is_found_out_at_the_start(home: Path) -> None:
    """SECURITY 10: user namespaces may be disabled; nobody should learn of it from a command that fails."""
    broken = home / "broken"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    box = await Sandbox.find("auto", home / "gateway", program=str(broken))
    assert not box.is_on
    assert "does not work here (bwrap: no permissions)" in box.description
    with pytest.raises(ConfigInvalid, match="no permissions"):
        await Sandbox.find("on", home / "gateway", program=str(broken))


@pytest.mark.sandbox
async def test_the_whole_machine_is_no_workspace() -> None:
    """SECURITY 10: a wall around everything is none."""
    box = await Sandbox.find("auto", Path("/"))
    assert not box.is_on
    assert "the workspace is the whole machine" in box.description


def test_only_known_names_of_the_environment_are_passed_on() -> None:
    """SECURITY 10: no key, no setting of the gateway, nothing that nobody thought of."""
    kept = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "LC_ALL": "C", "TERM": "xterm", "http_proxy": "http://proxy:3128"}
    dropped = {
        "HOLDFAST_SERVER__API_KEY": "x",
        "HOLDFAST_HOME": "x",
        "OPENAI_API_KEY": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
        "DATABASE_URL": "x",
        "SSH_AUTH_SOCK": "x",
        "LD_PRELOAD": "x",
        "UNHEARD_OF": "x",
        "https_proxy": "http://user:password@proxy:3128",
    }
    assert scrubbed({**kept, **dropped}) == kept
