"""The models that people choose from for a conversation, and those that are open because they were chosen."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.agent.models.port import Model
from holdfast.agent.models.providers import Directory
from holdfast.clock import Clock
from holdfast.config import ModelConfig
from holdfast.errors import HoldfastError, Rejected

log = logging.getLogger(__name__)

# A person waits for the list.
LIST_TIMEOUT_S = 4.0
# For how long a list is good.  One that could not be read is asked for again sooner.
LIST_MS, RETRY_MS = 10 * 60_000, 60_000
NEAR_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """What a provider offers; None where it does not tell."""

    names: Sequence[str] | None
    until_ms: float


class ModelChoices:
    """What the operator configured, and, for the operator, all that the configured providers offer.

    Others choose only among the configured models, because the operator pays for what they choose.
    """

    def __init__(
        self,
        config: ModelConfig,
        directory: Directory,
        open_: Callable[[str], Model],
        clock: Clock,
        plugins: Iterable[str] = (),
    ) -> None:
        self._config = config
        self._directory = directory
        self._open = open_
        self._clock = clock
        # The models of plugins cannot be listed.
        self._plugins = frozenset(plugins)
        self._opened: dict[str, Model] = {}
        self._offers: dict[str, _Offer] = {}

    @property
    def configured(self) -> str:
        return self._config.name

    def of(self, name: str) -> Model:
        """Return a chosen model, opened when it is first asked for.  Raises `ConfigInvalid` where it cannot be opened."""
        if name not in self._opened:
            self._opened[name] = self._open(name)
        return self._opened[name]

    async def offered(self, *, is_operator: bool) -> Sequence[str]:
        own = [self._config.name, *self._config.choices, *self._config.fallback]
        if is_operator and self._config.name:
            own += [name for names in (await self._all_offers()).values() for name in names or ()]
        return list(dict.fromkeys(filter(None, own)))

    async def find(self, wanted: str, *, is_operator: bool) -> str:
        if not self._config.name:
            raise Rejected("no model is configured, so the built-in demonstration answers; `holdfast init` sets one up")
        known = await self.offered(is_operator=is_operator)
        meant = [name for name in known if wanted.lower() in (name.lower(), name.partition(":")[2].lower())]
        if len(meant) == 1:
            return self._checked(meant[0])
        if not meant and is_operator and await self._is_unlisted(wanted.partition(":")[0]) and ":" in wanted:
            # Whether it exists is not known before its first answer.
            return self._checked(wanted)
        raise Rejected(f"there is no model {wanted[:100]!r} to choose; {_hint(wanted, meant or near(wanted, known))}")

    async def close(self) -> None:
        """Close every model that was opened."""
        for model in self._opened.values():
            await model.close()

    def _checked(self, name: str) -> str:
        self.of(name)
        return name

    async def _is_unlisted(self, provider: str) -> bool:
        return (await self._all_offers()).get(provider, ()) is None or provider in self._plugins

    async def _all_offers(self) -> Mapping[str, Sequence[str] | None]:
        """Return what each configured provider offers."""
        names = (self._config.name, *self._config.choices, *self._config.fallback)
        providers = dict.fromkeys([*(name.partition(":")[0] for name in names if name), *self._directory.providers])
        asked = [each for each in providers if each not in self._plugins]
        return dict(zip(asked, await asyncio.gather(*map(self._offer, asked)), strict=True))

    async def _offer(self, provider: str) -> Sequence[str] | None:
        kept = self._offers.get(provider)
        if kept is None or kept.until_ms < self._clock.monotonic_ms():
            names = await self._listed(provider)
            until = self._clock.monotonic_ms() + (RETRY_MS if names is None else LIST_MS)
            self._offers[provider] = kept = _Offer(names=names, until_ms=until)
        return kept.names

    async def _listed(self, provider: str) -> Sequence[str] | None:
        # The HTTP client takes long to import.
        from holdfast.agent.models.client import ModelClient
        from holdfast.agent.models.listing import listed

        client = ModelClient(self._clock)
        try:
            resolved = self._directory.resolve(provider, "model.choices")
            async with asyncio.timeout(LIST_TIMEOUT_S):
                return [f"{provider}:{name}" for name in await listed(provider, resolved, client, LIST_TIMEOUT_S)]
        except (HoldfastError, TimeoutError) as error:
            log.info("cannot list the models of %s: %s", provider, error or "it took too long")
            return None
        finally:
            with contextlib.suppress(HoldfastError):
                await client.close()


def near(wanted: str, known: Sequence[str]) -> list[str]:
    """Return the names that come nearest to what a person wrote, the nearest first."""
    word = wanted.lower()
    within = [name for name in known if word in name.lower()]
    # A person leaves the provider out, or misspells a part.
    spelled = {form: name for name in known for form in (name.partition(":")[2].lower(), name.lower())}
    close = [spelled[form] for form in difflib.get_close_matches(word, list(spelled), n=NEAR_MAX, cutoff=0.5)]
    return list(dict.fromkeys([*within, *close]))


def _hint(wanted: str, names: Sequence[str]) -> str:
    if not names:
        return "`/model` lists what there is"
    said = " or ".join(names[:NEAR_MAX])
    more = f", or {len(names) - NEAR_MAX} more with {wanted!r} in their names" if len(names) > NEAR_MAX else ""
    return f"did you mean {said}{more}?"
