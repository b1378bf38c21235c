"""Whether a command runs unasked: the whole rule, the few programs that can only print, and the hints."""

from __future__ import annotations

import time
from itertools import product

import pytest

from holdfast.sandbox.policy import (
    PRINTING,
    CommandVerdict,
    decide,
    denied,
    host,
    printing,
    reasons,
    refusal,
)
from tests.tables import every
from tests.tools.attacks import ONCE_UNASKED, OTHERS

COMMANDS = ("ls", "make", "rm -rf /", "curl x | sh")


@every(
    "command, confines, prints, hosts, deny",
    product(COMMANDS, (False, True), (False, True), ((), ("a.example",)), ((), ("*",))),
)
def test_what_contains_a_command_decides_and_not_its_text(
    command: str, confines: bool, prints: bool, hosts: tuple[str, ...], deny: tuple[str, ...]
) -> None:
    """SECURITY 9, 10: every combination, and for each the same whatever the command says."""
    found = decide(command, confines=confines, only_prints=prints, new_hosts=hosts, deny=deny)
    if deny:
        expected = CommandVerdict.REFUSE
    elif confines:
        expected = CommandVerdict.ASK if hosts else CommandVerdict.RUN
    else:
        expected = CommandVerdict.RUN if prints else CommandVerdict.ASK
    assert found.verdict is expected
    assert bool(found.reasons) == (expected is not CommandVerdict.RUN)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("pwd", ()),
        ("whoami", ()),
        ("id", ()),
        ("true", ()),
        ("uname -a", ()),
        ("date", ()),
        ("date -u +%F", ()),
        ("echo hello there", ()),
        ("echo -n hello", ()),
        ("ls", ()),
        ("ls -la  folder", ("folder",)),
        ("cat a.txt b/c.txt", ("a.txt", "b/c.txt")),
        ("cat -n a.txt", ("a.txt",)),
        ("head -n 5 a.txt", ("a.txt",)),
        ("head -5 a.txt", ("a.txt",)),
        ("tail -n +5 a.txt", ("a.txt",)),
        ("wc -l a.txt", ("a.txt",)),
    ],
)
def test_a_few_commands_can_only_print(command: str, files: tuple[str, ...]) -> None:
    found = printing(command)
    assert found
    assert (found.program, found.files) == (command.split()[0], files)
    assert list(found.arguments) == command.split()[1:]


# What is found outside of the workspace, or not at all, only the disk can tell.
_ON_DISK = {"cat /etc/passwd", "cat ../secret", "cat link", "cat folder/../../secret", "cat /dev/stdin", "ls /", "ls .."}
_ON_DISK |= {"cat /proc/self/environ", "head /etc/passwd", "ls link-to-root"}


@pytest.mark.parametrize("command", [each for each in (*ONCE_UNASKED, *OTHERS) if each not in _ON_DISK])
def test_no_attack_is_taken_for_a_command_that_can_only_print(command: str) -> None:
    """SECURITY 9."""
    assert printing(command) is None


@pytest.mark.parametrize("program", PRINTING)
def test_no_sign_of_the_shell_is_plain(program: str) -> None:
    """Whatever stands beside a program that can only print: one sign that a shell reads, and it is none."""
    for sign in "\"'`$&|;<>(){}[]*?!#~=\\^\n\r\0\x1b\x7f\u00e9\u2028":
        for command in (
            f"{program}{sign}",
            f"{sign}{program}",
            f"{program} a{sign}b",
            f"{program} {sign}",
            f"{program} -{sign}",
        ):
            assert printing(command) is None


@pytest.mark.parametrize("program", PRINTING)
def test_no_option_is_let_through_that_is_not_listed(program: str) -> None:
    words = [
        "--",
        "-",
        "--help",
        "--version",
        "-x",
        "-f",
        "--files0-from",
        "--output",
        "-o",
        "-e",
        "-E",
        "-s",
        "--set",
        "-z",
    ]
    listed = {"uname": {"-s", "-o"}}
    for word in (each for each in words if each not in listed.get(program, ())):
        assert printing(f"{program} {word}") is None
        assert printing(f"{program} {word} a") is None


@pytest.mark.parametrize(
    "piece", ["a ", "a;", "((", "$(", "'", "\\", "* ", "rm -rf a | ", "ls a b ", "- ", "/", "\n", "curl ", "curl internal "]
)
def test_a_long_command_is_decided_about_soon(piece: str) -> None:
    """SECURITY 12: 100 kB kept the loop for seconds."""
    command = (piece * 100_000)[:100_000]
    began = time.perf_counter()
    decide(command, confines=False, deny=["git push --force", "/curl.*internal/", "/(curl|wget).*internal.*x/", "*a*b*c*"])
    printing(command)
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    ("command", "pattern", "is_denied"),
    [
        ("git push --force", "git push --force", True),
        ("git  push   --force origin", "git push --force", True),
        ("cd repo && git push --force", "git push --force", True),
        ("echo $(git push --force)", "git push --force", True),
        ("git push", "git push --force", False),
        ("curl http://internal/x", "/curl.*internal/", True),
        ("ls", "/(/", True),
        ("shutdown now", "shutdown", True),
        ("ls", "shutdown", False),
    ],
)
def test_the_deny_list_finds_what_is_written_plainly(command: str, pattern: str, is_denied: bool) -> None:
    assert (denied(command, ["never mind", pattern]) == pattern) is is_denied


def test_a_person_reads_in_a_few_words_what_a_command_may_do() -> None:
    assert reasons("rm -rf build && pip install x; sudo curl y | sh") == (
        "it deletes files",
        "it installs packages",
        "it acts as another user",
        "it reaches other machines",
    )
    assert reasons("ls") == ()
    found = decide("rm x", confines=False, without="the sandbox is switched off")
    assert found.reasons == ("the sandbox is switched off", "it deletes files")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("example.com:443", "example.com"),
        ("example.com:80", "example.com"),
        ("example.com:8080", "example.com:8080"),
        ("127.0.0.1:5000", "127.0.0.1:5000"),
        ("::1", "[::1]"),
        ("[::1]:5000", "[::1]:5000"),
    ],
)
def test_a_host_is_compared_by_its_name_and_port(text: str, found: str) -> None:
    assert host(text) == found
    assert host(found) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "*",
        "*.example.com",
        "a b",
        "a/b",
        "https://a",
        "user@a",
        "a:",
        "a:0",
        "a:99999",
        "a:b",
        "a..b",
        "-a",
        "a\n",
        "[a]",
    ],
)
def test_what_names_no_single_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a host|has no port"):
        host(text) if text != "a\n" else host("a\nb")


def test_a_refusal_says_how_to_ask() -> None:
    assert "hosts=['a.example', 'b.example:22']" in refusal({"b.example:22", "a.example:443"})
