"""Settings: what an operator chose and where.  A change is tried as at a start before it is written."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes
from typing import Literal, cast

from holdfast.channels.settings import KINDS, misconfigured
from holdfast.config import Config, ConfigDraft, decided, draft, is_of_account, is_secret, secrets, shown, weakness
from holdfast.config.edits import edited
from holdfast.config.inventory import Setting, SettingForm, inventory
from holdfast.configfile import Where, parsed, text_of
from holdfast.core.keys import ADMIN
from holdfast.core.redaction import Redaction
from holdfast.errors import ConfigInvalid, DiskFull, Overridden, Rejected, Stale, Unavailable
from holdfast.operations.operation import operation
from holdfast.passwords import SALT_BYTES, hashed, is_usable

# How many settings one request may change.  There are fewer settings than this.
CHANGES_MAX = 200
# Trying a configuration takes much less than this.
REHEARSAL_TIMEOUT_S = 45
PASSWORD = "server.password"  # noqa: S105 - The name of one.
SECRET = "set"  # noqa: S105 - It stands in the place of one.
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# The tables whose keys are names that the operator chose.
NAMED = ("providers", "mcp", "channels.webhook.routes")
Source = Literal["file", "environment", "arguments", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """One setting, by its path in the file.  A secret is never shown, only whether there is one.

    `source` is where its value comes from; what comes from the environment or the command line the file cannot change.
    """

    key: str
    value: object
    default: object
    source: Source
    secret: bool
    doc: str
    form: SettingForm
    choices: Sequence[str] = ()
    editable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    """All settings as the next start will read them.  `revision` and `problem` are those of the file."""

    file: str
    revision: str
    items: Sequence[SettingView]
    restart_needed: bool
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """New values by key; null means the default.  With `base`, they are set only if the file still has that revision."""

    changes: Mapping[str, object] = field(repr=False)
    base: str | None = None

    def __post_init__(self) -> None:
        if len(self.changes) > CHANGES_MAX:
            raise Rejected(f"at most {CHANGES_MAX} settings can be changed at once")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the configuration of a gateway came from.  A file that was `named` has to exist.

    `arguments` are the settings that the command line decides; `loaded` is what was found without them.
    """

    file: Path
    named: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    loaded: Config | None = None


class Settings:
    """The settings of the gateway that runs.  `rehearse` tries a configuration as a start does, and raises what is wrong."""

    def __init__(
        self,
        origin: Origin,
        rehearse: Callable[[Config], Awaitable[None]],
        redaction: Redaction,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._origin = origin
        self._rehearse = rehearse
        self._redaction = redaction
        self._environment = environment
        self._changing = asyncio.Lock()
        # Without it, what the file holds now counts as loaded.
        self._loaded = origin.loaded or self._drafted(self._text()).config

    @operation("GET /api/settings", "List every setting with its value, its source and what it means", scope=ADMIN)
    async def view(self) -> SettingsView:
        return await asyncio.to_thread(lambda: self._view(self._text()))

    async def config(self) -> Config:
        """Return the configuration that the next start will find.  Raises `ConfigInvalid`."""
        return await asyncio.to_thread(lambda: self._drafted(self._text()).config)

    @operation("PATCH /api/settings", "Change settings in the file, to be read at the next start", scope=ADMIN)
    async def change(self, change: SettingsChange) -> SettingsView:
        """Write new values to the file, after trying them as a start would.

        Raises `ConfigInvalid` with what is wrong, `Overridden` for what the file does not decide, and `Stale` when the
        file was changed by another program.  Then nothing was changed.
        """
        # First, so that no error message can show them.
        self._redaction.learn(secrets_in(change.changes))
        try:
            return await self._changed(change)
        except ConfigInvalid as error:
            raise ConfigInvalid(self._redaction.everything.text(str(error))) from None

    async def _changed(self, change: SettingsChange) -> SettingsView:
        async with self._changing:
            old = await asyncio.to_thread(self._text)
            if change.base is not None and change.base != revision(old):
                raise Stale("the file has changed since these settings were read; read them again")
            new = await asyncio.to_thread(self._edited, old, change.changes)
            if new != old:
                config = self._drafted(new).config
                await self._tried(config)
                await asyncio.to_thread(self._replace, old, new)
                self._redaction.learn(secrets(config, self._environment))
            return await asyncio.to_thread(self._view, new)

    async def _tried(self, config: Config) -> None:
        try:
            async with asyncio.timeout(REHEARSAL_TIMEOUT_S):
                await self._rehearse(config)
        except TimeoutError:
            raise Unavailable("trying these settings took too long, so that nothing was changed; try again") from None

    def _text(self) -> str:
        return text_of(self._origin.file, required=False)

    def _drafted(self, text: str) -> ConfigDraft:
        return draft(text, self._environment, misconfigured, KINDS)

    def _edited(self, text: str, changes: Mapping[str, object]) -> str:
        known = {each.key: each.path for each in inventory(Config())}
        parsed(text)
        for key, value in changes.items():
            path = known.get(key, tuple(key.split(".")))
            # Which settings an account has, its platform says when the changed text is read.
            if key not in known and not is_of_account(path):
                raise _unknown(key, sorted(known))
            _refuse_nested(key, value)
            self._refuse_overridden(text, key, path)
            text = edited(text, path, _kept(key, value))
        return text

    def _refuse_overridden(self, text: str, key: str, path: Where) -> None:
        if key in self._origin.arguments:
            raise Overridden(f"{key}: the command line decides it; start the gateway without --{path[-1]}")
        # The file is not checked here, because this change may correct what is wrong in it.
        written = ConfigDraft(config=Config(), written=parsed(text), variables=decided(text, self._environment))
        if variable := written.variable(path):
            raise Overridden(f"{key}: the variable {variable} decides it; change that, or take it away")

    def _replace(self, old: str, new: str) -> None:
        if self._text() != old:
            raise Stale("the file has just changed; read the settings again")
        try:
            write(self._origin.file, new, private=self._drafted(new).holds_secrets)
        except OSError as error:
            if error.errno in _FULL:
                raise DiskFull("there is no room for the new settings; the old ones are as they were") from error
            raise Rejected(f"{self._origin.file} cannot be written: {error.strerror}; edit it as its owner") from error

    def _view(self, text: str) -> SettingsView:
        problem, found = None, None
        try:
            found = self._drafted(text)
        except ConfigInvalid as error:
            problem = self._redaction.everything.text(str(error))
        found = found or ConfigDraft(config=self._loaded, written={}, variables={})
        mask = Redaction(secrets(found.config, self._environment))
        return SettingsView(
            file=str(self._origin.file),
            revision=revision(text),
            items=[self._viewed(each, found, mask) for each in inventory(found.config)],
            restart_needed=problem is None and found.config != self._loaded,
            problem=problem,
        )

    def _viewed(self, setting: Setting, found: ConfigDraft, mask: Redaction) -> SettingView:
        value, secret = told(setting, mask)
        if setting.key in self._origin.arguments:
            value = self._origin.arguments[setting.key]
        return SettingView(
            key=setting.key,
            value=value,
            default=None if is_secret(setting.path) else setting.default,
            source=self._source(setting, found),
            secret=secret,
            doc=setting.doc,
            form=setting.form,
            choices=setting.choices,
            editable=not setting.named,
        )

    def _source(self, setting: Setting, found: ConfigDraft) -> Source:
        if setting.key in self._origin.arguments:
            return "arguments"
        if found.variable(setting.path):
            return "environment"
        return "file" if found.is_written(setting.path) else "default"


def _kept(key: str, value: object) -> object:
    """Return a value as it is written to the file.  A password is written as its hash.  Raises `ConfigInvalid`."""
    if key != PASSWORD or not isinstance(value, str) or not value or is_usable(value):
        return value
    if problem := weakness(value):
        raise ConfigInvalid(f"{key}: {problem}")
    return hashed(value, token_bytes(SALT_BYTES))


def revision(text: str) -> str:
    """Return a short hash of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def secrets_in(changes: Mapping[str, object]) -> list[str]:
    """Return the secrets among new values."""
    return [value for key, value in changes.items() if is_secret(tuple(key.split("."))) and isinstance(value, str)]


def told(setting: Setting, mask: Redaction) -> tuple[object, bool]:
    """Return what may be shown of a setting, and whether something of it is hidden."""
    if is_secret(setting.path):
        return (SECRET if setting.value else None), True
    if isinstance(setting.value, str) and "://" in setting.value:
        bare = shown(setting.value)
        return mask.text(bare), bare != setting.value
    return mask.value(setting.value), False


def write(file: Path, text: str, *, private: bool) -> None:
    """Replace a file atomically.  A private one is made unreadable for other users.  Raises `OSError`."""
    # A symbolic link stays, and what it points to is replaced.
    place = file.resolve()
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else PRIVATE
    handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as draft_file:
            draft_file.write(text.encode())
            draft_file.flush()
            os.fchmod(handle, mode & PRIVATE if private else mode)
            os.fsync(handle)
        Path(name).replace(place)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    folder = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unknown(key: str, known: Sequence[str]) -> ConfigInvalid:
    if any(key == each or key.startswith(f"{each}.") for each in NAMED):
        return ConfigInvalid(f"{key}: what has a name of its own is changed in the file by hand, and then read at a restart")
    near = difflib.get_close_matches(key, known, n=1)
    beside = [each for each in known if each.rpartition(".")[2] == key.rpartition(".")[2]]
    advice = f"did you mean {(near or beside)[0]}?" if near or beside else "GET /api/settings lists all there are"
    return ConfigInvalid(f"{key}: unknown setting; {advice}")


def _refuse_nested(key: str, value: object) -> None:
    match value:
        case list():
            parts = cast("list[object]", value)
        case dict():
            parts = list(cast("dict[str, object]", value).values())
        case _:
            parts = [] if value is None else [value]
    if not all(isinstance(each, str | int | float) for each in parts):
        raise ConfigInvalid(f"{key}: must be text, a number, true or false, or a list or a table of these")
