"""Addresses of memory providers: the part without secrets identifies one, and its credentials are sent only there."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from holdfast.config import MemoryConfig
from holdfast.errors import ConfigInvalid

# These providers need no key; a key is then only for an earlier provider that is still owed something.
_KEYLESS = frozenset({"builtin", "none"})
_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a provider.  `url` has no secret in it and no slash at its end."""

    url: str
    authorization: str = field(default="", repr=False)

    @property
    def origin(self) -> Origin:
        return origin(self.url)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that must be masked everywhere."""
        return (self.authorization.partition(" ")[2],)


def configured(config: MemoryConfig, environment: Mapping[str, str]) -> Address | None:
    """Return the configured address; None if there is none.  Raises `ConfigInvalid`."""
    if not config.url:
        return None
    key = key_of(config, environment)
    try:
        return Address(url=plain(config.url), authorization=f"Bearer {key}" if key else _basic(urlsplit(config.url)))
    except ValueError as error:
        raise ConfigInvalid("memory.url: must be an address that begins with http:// or https://") from error


def key_of(config: MemoryConfig, environment: Mapping[str, str]) -> str:
    """Return the configured key; empty if there is none.  Raises `ConfigInvalid`."""
    key, setting = config.api_key, "memory.api_key"
    if not key and config.api_key_env:
        key, setting = environment.get(config.api_key_env, ""), "memory.api_key_env"
        if not key.strip() and config.provider not in _KEYLESS:
            raise ConfigInvalid(f"{setting}: the variable {config.api_key_env} is not set")
    # A key that was read from a file may end in a line break.
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigInvalid(f"{setting}: holds characters that are not allowed in a key")
    return key


def plain(url: str) -> str:
    """Return the normalized form of an address, which identifies a provider.  Raises `ValueError`."""
    parts = urlsplit(url)
    scheme, host, port = origin(url)
    name = f"[{host}]" if ":" in host else host
    place = name if port == _PORTS[scheme] else f"{name}:{port}"
    return f"{scheme}://{place}{parts.path.rstrip('/')}"


def owner_of(name: str, url: str = "") -> str:
    """Return the name of a provider at an address in the ledger.  Raises `ValueError` if the address is invalid."""
    return f"{name}:{plain(url)}" if url else name


def origin(url: str) -> Origin:
    """Return the scheme, host and port of an address.  Raises `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("no address on the web")
    return parts.scheme, parts.hostname.rstrip("."), parts.port or _PORTS[parts.scheme]


def _basic(parts: SplitResult) -> str:
    if parts.username is None and parts.password is None:
        return ""
    told = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(told.encode()).decode()}"
