"""The launcher's own parts: its arguments, the filter, the profiles, and the text for macOS."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.config import McpConfig, TerminalConfig
from holdfast.sandbox import (
    Profile,
    Sandbox,
    SandboxKind,
    launcher,
    profile,
    seatbelt,
    seccomp,
    server_profile,
    terminal_profile,
)
from holdfast.sandbox.profile import SYSTEM

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_WORDS = st.one_of(
    st.sampled_from(
        [
            "--read",
            "--write",
            "--hide",
            "--blank",
            "--link",
            "--chdir",
            "--proxy-socket",
            "--network",
            "--limit",
            "--filter",
            "--",
        ]
    ),
    st.sampled_from([*launcher.KINDS, *launcher.LIMITS, "/tmp", "/", "..", "/a/../b", "0", "-1", "00", "9" * 50, "٣"]),
    st.text(max_size=20),
)


@given(st.lists(_WORDS, max_size=30))
def test_any_arguments_are_a_plan_or_a_value_error(words: list[str]) -> None:
    """Fuzzing: what is understood is confined to absolute paths, known limits and whole instructions."""
    try:
        plan = launcher.parse(words)
    except ValueError:
        return
    assert plan.kind in launcher.KINDS
    assert plan.command
    for path in (*plan.read, *plan.write, *plan.hide, *plan.blank, plan.chdir, *(link for link, _ in plan.links)):
        assert path.startswith("/")
        assert ".." not in path.split("/")
    assert set(plan.limits) <= set(launcher.LIMITS)
    assert all(number > 0 for number in plan.limits.values())
    assert len(plan.filter) % 8 == 0


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6))
def test_the_command_is_passed_on_as_it_is(command: list[str]) -> None:
    """Fuzzing: whatever it is called, no word of it is read as an option."""
    assert launcher.parse(["landlock", "--read", "/usr", "--", *command]).command == command


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "first argument"),
        (["chroot", "--", "ls"], "first argument"),
        (["landlock"], "no command"),
        (["landlock", "--"], "no command"),
        (["landlock", "--read", "--", "ls"], "absolute path"),
        (["landlock", "--read"], "needs a value"),
        (["landlock", "--limit", "luck", "3", "--", "ls"], "not a known limit"),
        (["landlock", "--filter", "00", "--", "ls"], "instructions"),
        (["landlock", "--filter", "zz", "--", "ls"], "non-hexadecimal"),
        (["landlock", "--wish", "--", "ls"], "unknown option"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_said(words: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        launcher.parse(words)


def judged(program: bytes, arch: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Run a filter as the kernel does, and return its verdict."""
    data = struct.pack("=iIQ6Q", number, arch, 0, *(*arguments, *(0,) * (6 - len(arguments))))
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at, held = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x54:
                held &= value
            case 0x06:
                return value
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
@pytest.mark.parametrize("namespaces", [True, False])
def test_the_filter_refuses_what_it_names_and_allows_the_rest(machine: str, namespaces: bool) -> None:
    """SECURITY 10: checked against the rules of the kernel's own machine, on both processors."""
    program = seccomp.program(namespaces=namespaces, machine=machine)
    arch, calls = seccomp.ARCHITECTURES[machine].arch, seccomp.ARCHITECTURES[machine].calls

    def allowed(name: str, *arguments: int) -> bool:
        return judged(program, arch, calls[name], arguments) == _ALLOW

    for name in (
        "ptrace",
        "mount",
        "bpf",
        "keyctl",
        "io_uring_setup",
        "userfaultfd",
        "unshare",
        "setns",
        "pidfd_getfd",
        "clone3",
    ):
        assert not allowed(name)
    assert judged(program, arch, 1) == judged(program, arch, 300_000) == _ALLOW
    assert judged(program, 0x40000003, 1) == _ERRNO | 38
    assert judged(program, arch, 0x40000001) == _ERRNO | 38
    assert allowed("clone", 0x01200011)
    assert not allowed("clone", 0x10000011)
    assert allowed("ioctl", 0, 0x5401)
    assert not allowed("ioctl", 0, 0x5412)
    assert not allowed("ioctl", 0, 0x7_0000_5412)
    assert [allowed("socket", family) for family in (1, 2, 10, 16, 17, 40, 38)] == [namespaces] * 4 + [False] * 3
    assert not allowed("socket", 16, 3, 9)
    assert allowed("prlimit64", 0)
    assert allowed("prlimit64", 5) is namespaces
    assert allowed("shmget") is namespaces


@given(number=st.integers(0, 1000), arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 3), namespaces=st.booleans())
def test_every_call_gets_a_verdict(number: int, arguments: tuple[int, ...], namespaces: bool) -> None:
    """Fuzzing: no jump of the filter leads out of it."""
    program = seccomp.program(namespaces=namespaces, machine="x86_64")
    verdict = judged(program, seccomp.ARCHITECTURES["x86_64"].arch, number, arguments)
    assert verdict == _ALLOW or verdict & 0xFFFF0000 == _ERRNO


def test_a_processor_without_a_table_has_no_filter() -> None:
    assert seccomp.program(namespaces=True, machine="s390x") == b""


def test_of_the_home_folder_only_programs_are_seen(tmp_path: Path) -> None:
    """SECURITY 10: an allowlist: a virtual environment, pyenv, what links lead to, and not the rest."""
    home = tmp_path / "home"
    for folder in (
        "venv/bin",
        "venv/lib",
        ".pyenv/shims",
        ".local/bin",
        ".local/lib",
        ".cargo/bin",
        "Documents",
        "python/bin",
        "python/lib",
    ):
        (home / folder).mkdir(parents=True)
    (home / "python/bin/python3").touch()
    (home / "venv/bin/python3").symlink_to(home / "python/bin/python3")
    path = ":".join(str(home / each) for each in ("venv/bin", ".pyenv/shims", ".local/bin", ".cargo/bin", "missing/bin"))
    seen = profile(tmp_path / "work", user_home=home, environment={"PATH": f"{path}:relative:{home}:/usr/bin"})
    shown = {each.relative_to(home).as_posix() for each in seen.readable if each.is_relative_to(home)}
    assert shown == {"venv", ".pyenv", "python", ".local/bin", ".cargo/bin"}
    assert home in seen.blank


def test_what_every_user_may_not_read_of_the_settings_is_hidden(tmp_path: Path) -> None:
    """SECURITY 10: root would read it all the same."""
    seen = profile(tmp_path, user_home=tmp_path / "home")
    for each in Path("/etc").iterdir():
        if not each.is_symlink() and not each.stat().st_mode & 0o004:
            assert each in seen.hidden
    assert {each for each in SYSTEM if each.exists()} == {*seen.links} | {each for each in seen.readable if each in SYSTEM}


def test_the_settings_of_the_terminal_become_a_profile(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "cache").mkdir()
    config = TerminalConfig(
        readable=(str(tmp_path / "data"),), writable=(str(tmp_path / "cache"),), memory_max_mb=10, processes_max=0, cpu_max=7
    )
    seen = terminal_profile(config, tmp_path / "work", tmp_path / "gateway", user_home=tmp_path / "home")
    assert seen.writable == (tmp_path / "work", tmp_path / "cache")
    assert tmp_path / "data" in seen.readable
    assert (seen.limits.memory, seen.limits.processes, seen.limits.cpu) == (10 * 1024 * 1024, 0, 7)
    words, _ = Sandbox(description="", profile=seen, kind=SandboxKind.LAUNCHER).wrap(["ls"], tmp_path)
    assert launcher.parse(words[words.index("namespaces") :]).limits == {
        "memory": 10 * 1024 * 1024,
        "file": seen.limits.file,
        "files": seen.limits.files,
        "cpu": 7,
    }


def test_a_server_sees_its_own_folder_and_the_files_of_its_command(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.touch()
    seen = server_profile(McpConfig(command=("python3", str(script))), tmp_path / "state", tmp_path, {"PATH": "/usr/bin"})
    assert seen.writable == (tmp_path / "state",)
    assert script in seen.readable
    assert seen.limits.cpu == 0


def test_the_profile_for_macos_denies_what_it_does_not_allow() -> None:
    """SECURITY 10: the last rule that matches counts, so the order is part of it."""
    seen = Profile(
        writable=(Path('/Users/a "b"/gateway/workspace'),),
        readable=(Path("/opt/tools"),),
        hidden=(Path('/Users/a "b"/gateway'), Path("/opt/tools/secret")),
    )
    lines = seatbelt.text(seen, Path("/private/tmp/x")).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert lines[-1] == "(deny network*)"
    reading = lines.index('(allow file-read* (subpath "/opt/tools"))')
    hiding = lines.index('(deny file* (subpath "/opt/tools/secret"))')
    home = lines.index('(deny file* (subpath "/Users/a \\"b\\"/gateway"))')
    workspace = lines.index('(allow file* (subpath "/Users/a \\"b\\"/gateway/workspace"))')
    assert reading < hiding < home + 2
    assert home < workspace
    assert not [line for line in lines if line.startswith("(allow network")]
    assert seatbelt.arguments(seen, ["ls"], Path("/private/tmp/x"))[::3] == ["/usr/bin/sandbox-exec", "ls"]
