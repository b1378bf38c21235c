"""Opens memory providers: the configured one, and earlier ones by their names in the ledger."""

from __future__ import annotations

import difflib
import inspect
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from holdfast.agent.plugins import MEMORIES, MemoryMaker, Plugins
from holdfast.clock import Clock
from holdfast.config import MemoryConfig
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, HoldfastError, Rejected
from holdfast.memory.address import Address, configured, key_of, origin, plain
from holdfast.memory.bindings import MemoryBindings
from holdfast.ports import MemoryProvider

log = logging.getLogger(__name__)

OPENVIKING = "openviking"
_METHODS = ("recall", "note", "commit", "forget", "check", "close")


def open_bindings(
    config: MemoryConfig,
    *,
    builtin: Callable[[], MemoryProvider],
    plugins: Plugins,
    redaction: Redaction,
    clock: Clock,
    environment: Mapping[str, str] = os.environ,
) -> MemoryBindings:
    """Open memory as it is configured.  Nothing is connected yet.  Raises `ConfigInvalid`."""
    shelf = _Shelf(
        # A plugin finds its key in `api_key`, even if it is configured as a variable.
        config=replace(config, api_key=key_of(config, environment)),
        address=configured(config, environment),
        builtin=builtin,
        plugins=plugins,
        redaction=redaction,
        clock=clock,
    )
    return MemoryBindings(shelf.current(), shelf.earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shelf:
    """Opens providers by name and address."""

    config: MemoryConfig
    address: Address | None
    builtin: Callable[[], MemoryProvider]
    plugins: Plugins
    redaction: Redaction
    clock: Clock

    def current(self) -> MemoryProvider | None:
        name = self.config.provider
        match name:
            case "none":
                return None
            case "builtin":
                return self.builtin()
            case "http" | "openviking":
                if self.address is None:
                    raise ConfigInvalid(f"memory.provider: needs memory.url, the address at which {name} answers")
                return self._at(name, self.address)
            case _:
                return self._chosen(name)

    def earlier(self, owner: str) -> MemoryProvider | None:
        """Open an earlier binding again; None if that is not possible."""
        name, _, url = owner.partition(":")
        try:
            match name:
                case "builtin":
                    return self.builtin()
                case "http" | "openviking":
                    return self._at(name, self._address_at(url))
                case _:
                    return self._again(name, url)
        except (Exception, SystemExit) as error:  # The edge to a plugin and to stored names: the segment stays parked.
            log.warning("memory is owed to %s, which cannot be opened: %s", owner, self.redaction.text(_told(error)))
            return None

    def _at(self, name: str, address: Address) -> MemoryProvider:
        # The HTTP client takes long to import, and the builtin needs none.
        if name == OPENVIKING:
            from holdfast.memory.openviking.provider import OpenVikingProvider as Maker
        else:
            from holdfast.memory.http import HttpProvider as Maker
        return Maker(address, timeout_s=self.config.commit_timeout, redaction=self.redaction, clock=self.clock)

    def _address_at(self, url: str) -> Address:
        return Address(
            url=plain(url), authorization=self.address.authorization if self.address and self._is_ours(url) else ""
        )

    def _is_ours(self, url: str) -> bool:
        """Return whether an address is on the server of the current provider; other servers do not get its key."""
        try:
            return self.address is not None and self.address.origin == origin(url)
        except ValueError:
            return False

    def _chosen(self, name: str) -> MemoryProvider:
        if (maker := self.plugins.memories.get(name)) is None:
            raise self._unknown(name)
        try:
            return self._made(maker, name, self.config)
        except (Exception, SystemExit) as error:  # The edge to a plugin.
            told = self.redaction.text(_told(error))
            raise ConfigInvalid(f"memory.provider: the plugin {name} does not work: {told}") from error

    def _again(self, name: str, url: str) -> MemoryProvider | None:
        if (maker := self.plugins.memories.get(name)) is None:
            return None
        config = replace(self.config, provider=name, url=url)
        if not self._is_ours(url):
            config = replace(config, api_key="", api_key_env="")
        return self._made(maker, name, config)

    def _made(self, maker: MemoryMaker, name: str, config: MemoryConfig) -> MemoryProvider:
        made = maker(config)
        if problem := wrong_with(made, name):
            raise Rejected(problem)
        if self.redaction.text(made.owner) != made.owner:
            raise Rejected("its owner contains a secret, but is shown in many places")
        return made

    def _unknown(self, name: str) -> ConfigInvalid:
        if problem := self.plugins.memory_problems.get(name):
            return ConfigInvalid(f"memory.provider: {problem}")
        every = [*sorted(MEMORIES | self.plugins.memories.keys())]
        near = difflib.get_close_matches(name, every, n=1)
        hint = f"did you mean {near[0]}? There are" if near else "there are"
        return ConfigInvalid(f"memory.provider: there is no {name!r} that could remember; {hint} {', '.join(every)}")


def wrong_with(made: object, name: str) -> str | None:
    """Return why an object of a plugin is not a provider of that name; None if it is."""
    owner = getattr(made, "owner", None)
    if not isinstance(owner, str):
        return f"{made!r:.200} is no memory provider: its owner is no str"
    if owner != name and not owner.startswith(f"{name}:"):
        return f"its owner is {owner[:200]!r}, which must be {name!r}, or that and an address behind a colon"
    if not isinstance(getattr(made, "mirrors", None), bool):
        return f"{made!r:.200} is no memory provider: its mirrors is no bool"
    for method in _METHODS:
        if not inspect.iscoroutinefunction(getattr(made, method, None)):
            return f"{made!r:.200} is no memory provider: its {method} is no async method"
    return None


def _told(error: BaseException) -> str:
    return str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
