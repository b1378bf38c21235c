"""What is a command and what is a message to the agent."""

from __future__ import annotations

import pytest

from holdfast.core.commands import COMMANDS, HELP, ChatCommand, CommandName, completed, completions, hint, is_compress, parse


@pytest.mark.parametrize("name", CommandName)
def test_every_command_is_known_by_its_name(name: CommandName) -> None:
    assert parse(f"/{name}") == ChatCommand(name=name)
    assert parse(f"  /{name.upper()}@holdfast \n") == ChatCommand(name=name)
    assert f"/{name}" in HELP


def test_what_follows_is_its_argument() -> None:
    assert parse("/title  a long walk ") == ChatCommand(name=CommandName.TITLE, argument="a long walk")


@pytest.mark.parametrize("text", ["", "hello", "new", "/", "/etc/hosts", "/newer", "//new", "say /new", "/new/", "@/new"])
def test_everything_else_is_for_the_agent(text: str) -> None:
    assert parse(text) is None


def test_the_table_names_each_command_once() -> None:
    assert [each.name for each in COMMANDS] == list(CommandName)


def test_an_argument_may_have_several_lines() -> None:
    assert parse("/queue\none\ntwo") == ChatCommand(name=CommandName.QUEUE, argument="one\ntwo")


def test_the_beginning_of_a_name_is_completed() -> None:
    assert [each.name for each in completions("/st")] == ["stop", "status", "steer"]
    assert completions("/") == COMMANDS
    assert [each.name for each in completions("/MODEL")] == ["model"]
    assert completions("/model ") == completions("model") == completions("") == completions("/etc") == ()


def test_the_tabulator_completes_what_can_only_go_on_in_one_way() -> None:
    assert [completed(text) for text in ("/mo", "/re", "/st", "/ret", "/xyz", "/model x", "hello", "")] == [
        "/model ", "/re", "/st", "/retry", "/xyz", "/model x", "hello", ""
    ]  # fmt: skip


def test_a_hint_names_the_commands_or_explains_the_one() -> None:
    assert hint("/st") == "/stop  /status  /steer"
    assert hint("/mod") == "/model [NAME]: choose the model of this conversation, or show it"
    assert hint("hello") == hint("/model x") == ""


def test_the_command_to_compress_goes_to_the_agent() -> None:
    assert is_compress(" /Compress@holdfast\n")
    assert not any(is_compress(text) for text in ("compress", "/compress please", "/compressed", "", "/"))
