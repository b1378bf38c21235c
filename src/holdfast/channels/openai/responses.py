"""Responses: requests as they are parsed, and what is kept of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.channels.openai import forms
from holdfast.channels.openai.chat import MESSAGES_MAX, call_text, result_text
from holdfast.channels.openai.content import Part, Said, TurnInput, Unfit, asked, read
from holdfast.channels.openai.models import OWN
from holdfast.core.intake import Prior, Speaker
from holdfast.ids import TurnId

PREFIX = "resp_"
METADATA_MAX = 16
ID_MAX = 200
ENDPOINT = "responses"
_SPEAKERS: Mapping[str, Speaker] = {
    "system": Speaker.SYSTEM,
    "developer": Speaker.SYSTEM,
    "user": Speaker.USER,
    "assistant": Speaker.ASSISTANT,
}
Fields = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputItem:
    """One thing that was said or done before, or the message to answer."""

    type: str | None = None
    role: str | None = None
    content: str | tuple[Part, ...] | None = None
    name: str = ""
    arguments: str = ""
    input: str = ""
    call_id: str = ""
    output: str | tuple[Part, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    format: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRequest:
    """The fields of a request that are read.  Sampling is the operator's choice, so fields about it are ignored."""

    input: str | tuple[InputItem, ...]
    model: str = OWN
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | Mapping[str, object] | None = None
    store: bool | None = None
    background: bool | None = None
    stream: bool | None = None
    metadata: Mapping[str, str] | None = None
    tool_choice: str | Mapping[str, object] | None = None
    text: TextOptions | None = None

    @property
    def is_kept(self) -> bool:
        return self.store is not False


def response_id(turn_id: TurnId) -> str:
    return f"{PREFIX}{turn_id}"


def turn_id(response_id: str) -> TurnId:
    """Return the turn of a response; one that no response has, where this is no id of one."""
    name = response_id.removeprefix(PREFIX)
    # No store has to look for what could not be one.
    return TurnId(name) if name != response_id and name.isprintable() and len(name) <= ID_MAX else TurnId("")


def wanted(request: ResponseRequest) -> TurnInput:
    """Return what a turn is to answer.  Raises `Unfit`."""
    _refuse_odd(request)
    said = [Said(speaker=Speaker.USER, text=request.input)] if isinstance(request.input, str) else said_in(request.input)
    found = asked(said)
    told = guidance(request)
    prior = (Prior(speaker=Speaker.SYSTEM, text=told), *found.prior) if told else found.prior
    return TurnInput(text=found.text, images=found.images, prior=prior)


def guidance(request: ResponseRequest) -> str:
    """Return what the model is told for this response alone."""
    form = forms.instruction(request.text.format if request.text else None)
    return "\n\n".join(part for part in (request.instructions or "", form) if part)


def kept(request: ResponseRequest) -> Fields:
    """Return what is kept of a request with its turn, so that the response can say it again."""
    facts = {
        "endpoint": ENDPOINT,
        "model": request.model,
        "instructions": request.instructions,
        "previous_response_id": request.previous_response_id,
        "background": request.background or None,
        "store": False if request.store is False else None,
        "metadata": dict(request.metadata) if request.metadata else None,
        "guided": bool(guidance(request)) or None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _refuse_odd(request: ResponseRequest) -> None:
    if request.conversation is not None:
        raise Unfit("conversations are not kept under a name of their own", "go on with previous_response_id")
    if request.background and not request.is_kept:
        raise Unfit(
            "a response in the background must be kept, or it could not be read later", "leave store out, or background"
        )
    if request.previous_response_id and not request.is_kept:
        hint = "leave store out, or send everything that was said in input"
        raise Unfit("what goes on from a kept response is kept with it", hint)
    if request.tool_choice not in (None, "auto", "none"):
        hint = "leave tool_choice out or say auto or none: the gateway uses its own tools, and gives no calls back"
        raise Unfit("no tool of the client's can be called from here", hint)
    if not isinstance(request.input, str) and len(request.input) > MESSAGES_MAX:
        raise Unfit(
            f"{len(request.input)} items are more than {MESSAGES_MAX}", "send fewer, and go on with previous_response_id"
        )
    if len(request.metadata or ()) > METADATA_MAX:
        raise Unfit(f"metadata has more than {METADATA_MAX} keys", "leave some out")


def said_in(items: Sequence[InputItem]) -> list[Said]:
    """Return what was said in a list of items.  Raises `Unfit` for items that are not supported."""
    return list(_all_said(items))


def _all_said(items: Sequence[InputItem]) -> Iterable[Said]:
    for number, item in enumerate(items):
        where = f"input[{number}]"
        match item.type:
            case None | "message":
                if (speaker := _SPEAKERS.get(item.role or "")) is None:
                    raise Unfit(
                        f"{where}: there is no role {(item.role or '')[:40]!r}", f"use one of: {', '.join(_SPEAKERS)}"
                    )
                text, images = read(item.content, where)
                yield Said(speaker=speaker, text=text, images=images)
            case "function_call" | "custom_tool_call":
                call = call_text(item.name, item.arguments or item.input, item.call_id)
                yield Said(speaker=Speaker.ASSISTANT, text=call)
            case "function_call_output" | "custom_tool_call_output":
                text, images = read(item.output, where)
                yield Said(speaker=Speaker.USER, text=result_text(item.call_id, text), images=images)
            case "reasoning":
                # What a model thought is for people; no model is shown what another one thought.
                pass
            case _:
                hint = "send messages, and calls and results of your own functions"
                raise Unfit(f"{where}: items of type {item.type[:40]!r} are not read here", hint)
