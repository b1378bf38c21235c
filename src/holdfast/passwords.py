"""Passwords of people: kept as a hash that takes long to guess from, and compared so that time tells nothing."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re

SCHEME = "scrypt"
SALT_BYTES = 16
_COST, _BLOCK, _LANES = 2**15, 8, 1
# What a hash may ask for: a check must not take all memory, nor be so cheap that it is none.
COST_MIN, COST_MAX = 2**14, 2**17
_MEMORY_MAX = 256 * COST_MAX * _BLOCK
_HASH = re.compile(rf"{SCHEME}\$(\d{{5,6}})\$([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+)")


def hashed(password: str, salt: bytes) -> str:
    """Return what may stand in a configuration in the place of a password."""
    return f"{SCHEME}${_COST}${_text(salt)}${_text(_derived(password, salt, _COST))}"


def is_usable(kept: str) -> bool:
    """Return whether a password can be checked against this."""
    return _parts(kept) is not None


def matches(kept: str, shown: str) -> bool:
    """Return whether it is the password.  This takes long on purpose, so call it in a thread."""
    parts = _parts(kept)
    if parts is None:
        return False
    cost, salt, wanted = parts
    return hmac.compare_digest(_derived(shown, salt, cost), wanted)


def _parts(kept: str) -> tuple[int, bytes, bytes] | None:
    if (match := _HASH.fullmatch(kept)) is None:
        return None
    cost = int(match[1])
    try:
        salt, wanted = base64.b64decode(match[2], validate=True), base64.b64decode(match[3], validate=True)
    except binascii.Error:
        return None
    fits = COST_MIN <= cost <= COST_MAX and cost & (cost - 1) == 0 and len(salt) >= SALT_BYTES and len(wanted) == 32
    return (cost, salt, wanted) if fits else None


def _derived(password: str, salt: bytes, cost: int) -> bytes:
    text = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(text, salt=salt, n=cost, r=_BLOCK, p=_LANES, maxmem=_MEMORY_MAX, dklen=32)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
