"""The kinds of chat accounts: every platform in one line, and those of other packages by their entry points.

Nothing of a platform is imported before an account of it is configured, because commands have to start fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from holdfast.config import ChatSettings, Config, Kinds, Problems
from holdfast.core.chats import place_named
from holdfast.errors import KindUnusable

if TYPE_CHECKING:
    # What only reads settings does not open accounts.
    from importlib.metadata import EntryPoint

    from holdfast.channels.chat.account import ChatKind

# What an entry point of this group names is a `ChatKind`.
GROUP = "holdfast.channels"
# What stands before the colon of other targets and in the channel of other sessions.
RESERVED = frozenset(
    {"api", "cron", "delegate", "file", "github", "github_comment", "log", "responses", "terminal", "url", "web", "webhook"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Platform:
    """Where a platform of our own is, as `module:name`."""

    settings: str
    kind: str


BUILT_IN = MappingProxyType({
    "telegram": _Platform(
        settings="holdfast.channels.telegram.config:TelegramSettings", kind="holdfast.channels.telegram.channel:TELEGRAM"
    ),
})  # fmt: skip


def names() -> list[str]:
    """Return the kinds there are."""
    return sorted({*BUILT_IN, *(point.name for point in _installed())})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableSettings(ChatSettings):
    """An account whose package has a fault: the settings that every account has."""


def settings_of(name: str) -> type[ChatSettings] | None:
    """Return the settings of a kind; None if there is no such kind, and `UnusableSettings` if its package has a fault."""
    if name in BUILT_IN:
        return cast("type[ChatSettings]", resolve_name(BUILT_IN[name].settings))
    try:
        return find(name).settings
    except LookupError:
        return None
    except KindUnusable:
        return UnusableSettings


def find(name: str) -> ChatKind[Any]:  # `Any` because each kind has settings of its own.
    """Return a kind.  Raises `LookupError` if there is none, and `KindUnusable` if its package has a fault."""
    if name in BUILT_IN:
        return cast("ChatKind[Any]", resolve_name(BUILT_IN[name].kind))
    points = [point for point in _installed() if point.name == name]
    if not points:
        raise LookupError(name)
    if len(points) > 1:
        raise KindUnusable(f"several packages have the kind {name!r}: {', '.join(map(_package, points))}; remove one")
    return _loaded(points[0])


KINDS = Kinds(find=settings_of, names=names, unusable=UnusableSettings)


def misconfigured(config: Config) -> Problems:
    """Yield what is wrong with the accounts of a configuration, and the path of each setting."""
    for name, account in config.channels.accounts.items():
        if name in RESERVED:
            yield ("channels", name), f"cannot be the name of an account, because other messages go to {name}:"
        yield from ((("channels", name, key), problem) for key, problem in _wrong_with(account))


def _wrong_with(account: ChatSettings) -> Iterator[tuple[str, str]]:
    if account.home:
        try:
            place_named(account.home)
        except ValueError as error:
            yield "home", str(error)


def _installed() -> Sequence[EntryPoint]:
    # Importing it takes longer than reading most configurations.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _loaded(point: EntryPoint) -> ChatKind[Any]:
    try:
        kind = cast("object", point.load())
    except (Exception, SystemExit) as error:  # The edge to another package: its bug is its own.
        raise _fault(point, f"cannot be imported: {type(error).__name__}: {error}") from error
    if problem := _wrong_with_kind(kind):
        raise _fault(point, problem)
    return cast("ChatKind[Any]", kind)


def _fault(point: EntryPoint, problem: str) -> KindUnusable:
    return KindUnusable(f"the kind {point.name!r} of {_package(point)} ({point.value}) {problem}")


def _wrong_with_kind(kind: object) -> str:
    """Return why an object is no kind; empty if it is one."""
    from holdfast.channels.chat.account import ChatKind

    if not isinstance(kind, ChatKind):
        return f"is no ChatKind but of the type {type(kind).__name__}"
    settings = cast("object", cast("ChatKind[Any]", kind).settings)
    name = getattr(settings, "__name__", repr(settings))
    if not (isinstance(settings, type) and is_dataclass(settings) and issubclass(settings, ChatSettings)):
        return f"has settings that are no dataclass which extends ChatSettings: {name}"
    required = [each.name for each in fields(settings) if each.default is MISSING and each.default_factory is MISSING]
    if required:
        return f"has settings without a default: {', '.join(required)} of {name}"
    try:
        get_type_hints(settings)
    except Exception as error:  # The edge to another package, as above.
        return f"has settings whose types cannot be read: {error}"
    return ""


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value
