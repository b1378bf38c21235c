"""Ids that sort by the time they were made, so that new rows land at the end of every index."""

from __future__ import annotations

import os
import secrets
from collections import deque
from typing import NewType

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
DeliveryId = NewType("DeliveryId", str)
SegmentId = NewType("SegmentId", str)
NodeId = NewType("NodeId", str)
ProcessId = NewType("ProcessId", str)
MemoryId = NewType("MemoryId", str)
KeyId = NewType("KeyId", str)
PairingId = NewType("PairingId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_RANDOM_BITS = 80
_RANDOM_BYTES = _RANDOM_BITS // 8
# Asking the system gives the interpreter away, and a busy loop waits long to get it back: so it is asked for many at once.
_ASKED_FOR = 256
_CODE_CHARS = 8
_random: deque[int] = deque()
# What a child process inherits its parent will use as well.
os.register_at_fork(after_in_child=_random.clear)


def new_id(prefix: str, now_ms: int) -> str:
    """Return `prefix_` and 26 characters: 48 bits of time, then 80 random ones."""
    number = (now_ms << _RANDOM_BITS) | _random_bits()
    return f"{prefix}_" + "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def _random_bits() -> int:
    try:
        return _random.popleft()
    except IndexError:
        fresh = os.urandom(_RANDOM_BYTES * _ASKED_FOR)
        _random.extend(int.from_bytes(fresh[at : at + _RANDOM_BYTES]) for at in range(0, len(fresh), _RANDOM_BYTES))
        return int.from_bytes(os.urandom(_RANDOM_BYTES))


def new_session_id(now_ms: int) -> SessionId:
    return SessionId(new_id("ses", now_ms))


def new_turn_id(now_ms: int) -> TurnId:
    return TurnId(new_id("trn", now_ms))


def new_delivery_id(now_ms: int) -> DeliveryId:
    return DeliveryId(new_id("dlv", now_ms))


def new_segment_id(now_ms: int) -> SegmentId:
    return SegmentId(new_id("seg", now_ms))


def new_process_id(now_ms: int) -> ProcessId:
    return ProcessId(new_id("prc", now_ms))


def new_memory_id(now_ms: int) -> MemoryId:
    return MemoryId(new_id("mem", now_ms))


def new_key_id(now_ms: int) -> KeyId:
    return KeyId(new_id("key", now_ms))


def new_pairing_id(now_ms: int) -> PairingId:
    return PairingId(new_id("pair", now_ms))


def new_pairing_code() -> str:
    """Return a code that a person can type: no letter of it looks like a digit."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS)).upper()


def new_node_id(now_ms: int) -> NodeId:
    return NodeId(new_id("nod", now_ms))
