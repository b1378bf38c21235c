"""The sandbox, by bubblewrap and by our launcher: what a command can do in it and what it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.errors import ConfigInvalid
from holdfast.sandbox import Sandbox, SandboxKind, profile, scrubbed
from tests.machine import CONFINING
from tests.sandbox.arena import interpreter_for_everybody


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


BOTH = pytest.mark.parametrize("kind", CONFINING)


async def sandbox(home: Path, kind: SandboxKind, workspace: str = "gateway/workspace") -> Sandbox:
    seen = profile(home / workspace, hidden=[home / "gateway"], user_home=home / "person")
    return await Sandbox.find("on", seen, kinds=[kind])


def run(box: Sandbox, script: str, user: int | None = None) -> subprocess.CompletedProcess[str]:
    return started(box.wrap(["/bin/sh", "-c", script], box.workspace)[0], user)


def started(argv: list[str], user: int | None = None) -> subprocess.CompletedProcess[str]:
    environment = scrubbed(os.environ)
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=30, env=environment, start_new_session=True, user=user, group=user
    )


@BOTH
async def test_a_command_works_in_the_workspace(home: Path, kind: SandboxKind) -> None:
    """SECURITY 10: what is written there stays, and its exit status comes back."""
    box = await sandbox(home, kind)
    assert (box.kind, box.confines) == (kind, True)
    done = run(box, "pwd; mkdir a && echo hello > a/file; exit 7")
    assert (done.returncode, done.stdout) == (7, f"{home}/gateway/workspace\n")
    assert (home / "gateway/workspace/a/file").read_text() == "hello\n"


@BOTH
@pytest.mark.parametrize(
    "place", ["/etc/holdfast-test", "/usr/holdfast-test", "/proc/sys/kernel/core_pattern", "/var/holdfast-test"]
)
async def test_a_command_cannot_write_outside(home: Path, kind: SandboxKind, place: str) -> None:
    """SECURITY 10: not even root, and not the settings of the kernel."""
    done = run(await sandbox(home, kind), f": >> {place}")
    assert done.returncode != 0
    assert "ead-only" in done.stderr or "denied" in done.stderr
    assert place.startswith("/proc") or not Path(place).exists()


@BOTH
@pytest.mark.parametrize("place", ["gateway/holdfast.toml", "person/.ssh/id_rsa", "person/.netrc"])
@pytest.mark.parametrize("workspace", ["gateway/workspace", "person"])
async def test_a_command_finds_no_secrets(home: Path, kind: SandboxKind, place: str, workspace: str) -> None:
    """SECURITY 10: also where the workspace lies in what is hidden, and where the secrets lie in the workspace."""
    box = await sandbox(home, kind, workspace)
    done = run(box, f"cat {home / place}; ls -A {(home / place).parent}")
    assert "secret" not in done.stdout
    assert (home / place).read_text() == "secret"


@BOTH
async def test_secrets_that_appear_later_are_hidden_as_well(home: Path, kind: SandboxKind) -> None:
    """SECURITY 10: the walls are put up for each command anew."""
    box = await sandbox(home, kind, "person")
    (home / "person" / ".aws").mkdir()
    (home / "person" / ".aws" / "credentials").write_text("secret")
    assert "secret" not in run(box, "cat .aws/credentials .aws/*").stdout
    assert run(box, "cat notes.txt").stdout == "notes"


@BOTH
async def test_a_command_sees_no_other_process_and_no_foreign_file_in_tmp(home: Path, kind: SandboxKind) -> None:
    """SECURITY 10: process ids, temporary files and the sockets of daemons are its own."""
    box = await sandbox(home, kind)
    (home / "foreign").write_text("here")
    done = run(box, f"ls /proc | grep -c '^[0-9]'; cat {home}/foreign; ls -A /run; kill -0 {os.getpid()} || echo alone")
    count, *rest = done.stdout.split()
    assert int(count) < 10
    assert "here" not in rest
    assert "alone" in rest


@BOTH
async def test_what_a_command_leaves_behind_ends_with_it(home: Path, kind: SandboxKind) -> None:
    """R10: a group dies together: the pipe that the child holds is closed when the command ends."""
    box = await sandbox(home, kind)
    done = run(box, "sleep 600 & echo started")
    assert done.stdout == "started\n"


@BOTH
async def test_the_sandbox_ends_with_whoever_keeps_it(home: Path, kind: SandboxKind) -> None:
    """R10: the keeper stands outside; when it is killed, nothing runs on unseen."""
    box = await sandbox(home, kind)
    argv, _ = box.wrap(["/bin/sh", "-c", "echo ready; exec sleep 600"], box.workspace)
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


@BOTH
async def test_an_ordinary_user_gets_the_same_walls(kind: SandboxKind) -> None:
    """SECURITY 10: nothing of it needs root."""
    if os.getuid() != 0:
        pytest.skip("every other test here ran as an ordinary user")
    with TemporaryDirectory() as place:
        home = furnished(Path(place))
        home.chmod(0o755)
        # What PATH names here may be root's alone.
        plain = {"PATH": "/usr/bin:/bin"}
        seen = profile(home / "gateway/workspace", hidden=[home / "gateway"], user_home=home / "person", environment=plain)
        box = await Sandbox.find("on", seen, kinds=[kind])
        box.workspace.chmod(0o777)
        script = f"PATH=/usr/bin:/bin; id -u; echo x > file; cat {home}/person/.ssh/id_rsa; : >> /etc/holdfast-test"
        argv, _ = box.wrap(["/bin/sh", "-c", script], box.workspace)
        done = started([interpreter_for_everybody(), *argv[1:]], user=65534)
        assert (done.stdout, (box.workspace / "file").read_text()) == ("65534\n", "x\n"), done.stderr


async def test_off_is_off(home: Path) -> None:
    """SECURITY 10: an explicit choice, and shown."""
    box = await Sandbox.find("off", profile(home))
    assert box.kind is SandboxKind.NONE
    assert box.description == 'off: tools.terminal.sandbox is "off"'
    assert not box.missing
    assert box.wrap(["ls", "-l"], home) == (["ls", "-l"], {})


@pytest.mark.launcher
async def test_without_bubblewrap_the_launcher_does_it() -> None:
    """SECURITY 10: the next best mechanism that works is taken."""
    with TemporaryDirectory() as place:
        box = await Sandbox.find("on", profile(Path(place)))
    assert (box.kind, box.confines, box.missing) == (SandboxKind.LAUNCHER, True, False)


async def test_where_nothing_works_auto_says_so_and_on_refuses(home: Path) -> None:
    """SECURITY 10: a fallback has a visible reason; a requirement ends the start with what to install."""
    box = await Sandbox.find("auto", profile(home), kinds=[SandboxKind.BUBBLEWRAP])
    assert (box.kind, box.confines, box.missing) == (SandboxKind.NONE, False, True)
    assert box.description.startswith("missing: bwrap is not installed; to have one, install bubblewrap")
    with pytest.raises(ConfigInvalid, match=r"tools\.terminal\.sandbox.*install bubblewrap"):
        await Sandbox.find("on", profile(home), kinds=[SandboxKind.BUBBLEWRAP])


@pytest.mark.landlock
async def test_landlock_alone_is_called_weak_and_does_not_confine(home: Path) -> None:
    """SECURITY 10: it protects files, and commands are asked about all the same."""
    box = await Sandbox.find("auto", profile(home / "gateway"), kinds=[SandboxKind.LANDLOCK])
    assert (box.kind, box.confines, box.missing) == (SandboxKind.LANDLOCK, False, True)
    assert box.description.startswith("weak: ")


@pytest.mark.launcher
async def test_a_bubblewrap_that_does_not_work_is_found_out_at_the_start(home: Path) -> None:
    """SECURITY 10: user namespaces may be disabled; nobody should learn of it from a command that fails."""
    broken = home / "broken"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    box = await Sandbox.find("auto", profile(home / "gateway"), program=str(broken), kinds=[SandboxKind.BUBBLEWRAP])
    assert box.kind is SandboxKind.NONE
    assert "does not work here (bwrap: no permissions)" in box.description
    with pytest.raises(ConfigInvalid, match="no permissions"):
        await Sandbox.find("on", profile(home / "gateway"), program=str(broken), kinds=[SandboxKind.BUBBLEWRAP])


async def test_the_whole_machine_is_no_workspace() -> None:
    """SECURITY 10: a wall around everything is none."""
    box = await Sandbox.find("auto", profile(Path("/")))
    assert box.kind is SandboxKind.NONE
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


@BOTH
async def test_what_is_hidden_stays_hidden_from_the_next_command(home: Path, kind: SandboxKind) -> None:
    """S3: where the workspace is the home folder, a command renames what holds a secret, and the next one reads it."""
    for name in (".config/gh", ".local/share/keyrings"):
        (home / "person" / name).mkdir(parents=True)
        (home / "person" / name / "token").write_text("secret")
    first = run(await sandbox(home, kind, "person"), "mv .config taken; mv .local/share .local/taken; mv .local away; ls -A")
    assert ".config" in first.stdout.splitlines()
    second = run(await sandbox(home, kind, "person"), "grep -rl secret . ; echo x > .config/own && cat .config/own")
    assert second.stdout == "x\n", first.stderr


async def test_a_bubblewrap_of_the_workspace_is_never_run(home: Path) -> None:
    """S1: PATH may lead into the workspace, and what a command has left there would run as the gateway."""
    planted = home / "gateway/workspace/bwrap"
    planted.write_text(f"#!/bin/sh\ntouch {home}/escaped\n")
    planted.chmod(0o755)
    seen = profile(home / "gateway/workspace", hidden=[home / "gateway"], user_home=home / "person")
    (home / "link").symlink_to(planted)
    for program in (planted, home / "link"):
        box = await Sandbox.find("auto", seen, program=str(program), kinds=[SandboxKind.BUBBLEWRAP])
        assert (box.confines, "where commands can change it" in box.description) == (False, True)
    assert not (home / "escaped").exists()
