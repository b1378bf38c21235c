"""The inventory: every setting of a configuration with its description, value and default."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import time
from enum import StrEnum
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from holdfast.config.tree import Config
from holdfast.configfile import Where, by_kind


class SettingForm(StrEnum):
    """The kind of value that a setting has."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    TIME = "time"
    LIST = "list"
    TABLE = "table"
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting.

    `named` settings belong to a table that the operator named, such as a provider or a webhook route.  Accounts of chat
    platforms are named too, but a program can add and change them, so they do not count.
    """

    path: Where
    doc: str
    form: SettingForm
    value: object
    default: object
    choices: tuple[str, ...] = ()
    named: bool = False

    @property
    def key(self) -> str:
        return ".".join(self.path)


def inventory(config: Config) -> Iterator[Setting]:
    """Yield every setting, in the order of the tree."""
    return _below(config, (), named=False)


def _below(node: object, path: Where, *, named: bool) -> Iterator[Setting]:
    hints, accounts = get_type_hints(type(node), include_extras=True), by_kind(node)
    # `Any` because the node is any dataclass of the tree.
    for field in dataclasses.fields(cast("Any", node)):
        here, value, kind = (*path, field.name), getattr(node, field.name), hints[field.name]
        if dataclasses.is_dataclass(value):
            yield from _below(value, here, named=named)
        elif get_origin(kind) is Annotated:
            yield _setting(here, value, kind, _default(field), named=named)
        else:
            above = path if field.name == accounts else here
            for name, each in cast("Mapping[str, object]", value).items():
                yield from _below(each, (*above, name), named=field.name != accounts)


def _setting(path: Where, value: object, annotated: object, default: object, *, named: bool) -> Setting:
    kind, doc = get_args(annotated)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    return Setting(
        path=path,
        doc=doc,
        form=_form(kind),
        value=plain(value),
        default=plain(default),
        choices=choices,
        named=named,
    )


def _default(field: dataclasses.Field[Any]) -> object:  # `Any` because a field has any type.
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _form(kind: object) -> SettingForm:
    match kind:
        case _ if kind is str:
            return SettingForm.TEXT
        case _ if kind is bool:
            return SettingForm.FLAG
        case _ if kind is int or kind is float:
            return SettingForm.NUMBER
        case _ if kind is time:
            return SettingForm.TIME
        case _ if get_origin(kind) is Literal:
            return SettingForm.CHOICE
        case _ if get_origin(kind) is tuple:
            return SettingForm.LIST
        case _ if get_origin(kind) is Mapping:
            return SettingForm.TABLE
        case _:
            return SettingForm.ANY


def plain(value: object) -> object:
    """Return a value with the types of JSON."""
    match value:
        case time():
            return value.isoformat("minutes" if not value.second and not value.microsecond else "auto")
        case tuple():
            return [plain(each) for each in cast("tuple[object, ...]", value)]
        case Mapping():
            return {key: plain(each) for key, each in cast("Mapping[str, object]", value).items()}
        case _:
            return value
