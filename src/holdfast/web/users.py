"""Users: which user of this machine is at the other end of a connection, as the kernel knows it."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from typing import Any

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_EVERY_STATE = 0xFFFFFFFF
_NO_COOKIE = 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_REPLY_MAX = 4096
# Of a socket in another state the kernel may not know any more whose it was, and then says that it was root's.
_OPEN = frozenset({1, 8})
_TIMEOUT_S = 1.0
_PEER = struct.Struct("=iII")


def uid_of(connection: socket.socket) -> int | None:
    """Return the user at the other end of a connection from this machine; None where that cannot be told."""
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        if connection.family == socket.AF_UNIX:
            _, uid, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            return uid
        return _uid_of_owner(connection.family, connection.getpeername(), connection.getsockname())
    return None


def can_tell() -> bool:
    """Return whether this machine says who is at the other end of a TCP connection."""
    with (
        contextlib.suppress(OSError),
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=_TIMEOUT_S) as near,
        listener.accept()[0] as far,
    ):
        return uid_of(near) is not None and uid_of(far) is not None
    return False


def _uid_of_owner(family: int, near: Any, far: Any) -> int | None:  # Addresses are tuples of what their family has.
    """Return whose the socket is that is bound to `near` and connected to `far`."""
    wanted = struct.pack("!HH", near[1], far[1]) + _packed(family, near[0]) + _packed(family, far[0])
    question = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _EVERY_STATE) + wanted
    question += struct.pack("=III", 0, _NO_COOKIE, _NO_COOKIE)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_TIMEOUT_S)
        kernel.send(_HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + question)
        reply = kernel.recv(_REPLY_MAX)
    _, kind, *_ = _HEADER.unpack_from(reply)
    found = reply[_HEADER.size :]
    # Where there is no such connection, the kernel may answer with the socket that listens on that port.
    if kind != _SOCK_DIAG_BY_FAMILY or found[1] not in _OPEN:
        return None
    (uid,) = struct.unpack_from("=I", found, 64)
    return uid


def _packed(family: int, host: str) -> bytes:
    return socket.inet_pton(family, host.partition("%")[0]).ljust(16, b"\0")
