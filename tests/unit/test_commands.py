"""What is a command and what is a message to the agent."""

from __future__ import annotations

import pytest

from holdfast.core.commands import COMPRESS, HELP, ChatCommand, CommandName, is_compress, parse


@pytest.mark.parametrize("name", CommandName)
def test_every_command_is_known_by_its_name(name: CommandName) -> None:
    assert parse(f"/{name}") == ChatCommand(name=name)
    assert parse(f"  /{name.upper()}@holdfast \n") == ChatCommand(name=name)
    assert name in HELP


def test_what_follows_is_its_argument() -> None:
    assert parse("/title  a long walk ") == ChatCommand(name=CommandName.TITLE, argument="a long walk")


@pytest.mark.parametrize("text", ["", "hello", "new", "/", "/etc/hosts", "/newer", "//new", "say /new", "/new/", "@/new"])
def test_everything_else_is_for_the_agent(text: str) -> None:
    assert parse(text) is None


def test_the_command_to_compress_is_listed_and_goes_to_the_agent() -> None:
    assert COMPRESS in HELP
    assert parse("/compress") is None
    assert is_compress(" /Compress@holdfast\n")
    assert not any(is_compress(text) for text in ("compress", "/compress please", "/compressed", "", "/"))
