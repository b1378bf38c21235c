"""What one process leaves to the next: its listeners, and the lock of the home."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast.daemon.handover import Handover, inherit, pass_on
from holdfast.errors import Owned
from holdfast.store.home import Ownership
from holdfast.web.server import tcp_socket, unix_socket


def test_a_lock_that_was_handed_over_is_never_free(tmp_path: Path) -> None:
    first = Ownership(tmp_path / "lock")
    kept = first.hand_over()
    first.release()
    with pytest.raises(Owned, match=str(os.getpid())):
        Ownership(tmp_path / "lock")
    second = Ownership(tmp_path / "lock", kept)
    with pytest.raises(Owned):
        Ownership(tmp_path / "lock")
    second.release()
    Ownership(tmp_path / "lock").release()


def test_a_lock_of_another_home_is_given_up(tmp_path: Path) -> None:
    other = Ownership(tmp_path / "other")
    kept = other.hand_over()
    other.release()
    Ownership(tmp_path / "lock", kept).release()
    Ownership(tmp_path / "other").release()


def test_an_estate_is_found_once_and_closed_to_children() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environment: dict[str, str] = {}
        kept = listener.dup()
        pass_on(Handover(listener=kept), environment)
        # The process that kept it is gone now.
        kept.detach()
        inherited = inherit(environment).listener
        assert inherited is not None
        with inherited:
            assert inherited.getsockname() == listener.getsockname()
            assert not inherited.get_inheritable()
        assert inherit(environment) == Handover()


@pytest.mark.parametrize("number", ["", "x", "-1", "99999"])
def test_an_estate_that_is_none_is_passed_over(number: str) -> None:
    names = ("HOLDFAST_LISTENER", "HOLDFAST_UNIX_LISTENER", "HOLDFAST_LOCK")
    assert inherit(dict.fromkeys(names, number)) == Handover()


def test_a_listener_is_used_only_where_it_is_what_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with tcp_socket("127.0.0.1", port, listener.dup()) as same:
            assert same.getsockname() == ("127.0.0.1", port)
        with tcp_socket("127.0.0.1", 0, listener.dup()) as any_port:
            assert any_port.getsockname() == ("127.0.0.1", port)
        wrong = listener.dup()
        with tcp_socket("127.0.0.2", 0, wrong) as other:
            assert other.getsockname()[0] == "127.0.0.2"
        assert wrong.fileno() == -1


def test_a_unix_listener_is_used_only_while_its_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with unix_socket(path) as listener:
        kept, lost = listener.dup(), listener.dup()
    with unix_socket(path, kept) as same:
        assert same is kept
    path.unlink()
    with unix_socket(path, lost) as other:
        assert (lost.fileno(), other.getsockname()) == (-1, str(path))
