"""What a client says: messages of every role, with text and pictures, as one turn takes them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import images as pictures
from holdfast.core.images import IMAGES_MAX, MEDIA_TYPES
from holdfast.core.intake import Image, Prior, Speaker
from holdfast.errors import Rejected

# What stands in earlier words where a picture was.
PICTURE = "[image]"
_AS_TEXT = "send it as a text part"
_DATA_URL = "send the picture itself, as a data: URL with base64"


class Unfit(Rejected):
    """A request that is well formed and still asks for what is not done here; `hint` says what is."""

    def __init__(self, message: str, hint: str, status: int = 400, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageUrl:
    """Where a picture is."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a message, in the words of chat completions and in those of responses."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a conversation that the client keeps."""

    speaker: Speaker
    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """What one turn is to answer, and what was said before."""

    text: str
    images: tuple[Image, ...] = ()
    prior: tuple[Prior, ...] = ()


def asked(said: Sequence[Said]) -> TurnInput:
    """Return the last thing that the client's side said, with everything else as what came before it.

    Pictures that came before are shown with it, the latest ones, as many as a message takes.
    """
    last = max((number for number, each in enumerate(said) if each.speaker is Speaker.USER), default=None)
    if last is None:
        raise Unfit("there is no message of the user to answer", "send a message with the role user, and some text in it")
    if any(each.speaker is Speaker.ASSISTANT for each in said[last:]):
        raise Unfit("the last message is the assistant's own", "end with the message that is to be answered")
    message = said[last]
    if not message.text.strip() and not message.images:
        raise Unfit("the message to answer is empty", "put some text into the last message")
    others = [each for number, each in enumerate(said) if number != last]
    room = max(IMAGES_MAX - len(message.images), 0)
    earlier = [image for each in others for image in each.images]
    images = (*earlier[len(earlier) - min(room, len(earlier)) :], *message.images)
    pictures.check(images)
    prior = tuple(Prior(speaker=each.speaker, text=text) for each in others if (text := _with_marks(each)))
    return TurnInput(text=message.text, images=images, prior=prior)


def only(found: TurnInput) -> TurnInput:
    """Return what is to be answered alone, for a conversation that is kept here."""
    return TurnInput(text=found.text, images=found.images)


def _with_marks(said: Said) -> str:
    return "\n".join(part for part in (said.text, *(PICTURE for _ in said.images)) if part)


def read(content: str | Sequence[Part] | None, where: str) -> tuple[str, tuple[Image, ...]]:
    """Return the text and the pictures of a message.  Raises `Unfit` for parts that are not supported."""
    if content is None:
        return "", ()
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    found: list[Image] = []
    for number, part in enumerate(content):
        match part.type:
            case "text" | "input_text" | "output_text" | "refusal":
                texts.append(part.text or part.refusal or "")
            case "image_url" | "input_image":
                found.append(_image(part, f"{where}.content[{number}]"))
            case _:
                raise Unfit(f"{where}.content[{number}]: parts of type {part.type[:40]!r} are not read here", _AS_TEXT)
    return "\n".join(texts), tuple(found)


def _image(part: Part, where: str) -> Image:
    url = part.image_url.url if isinstance(part.image_url, ImageUrl) else part.image_url
    if url is None:
        raise Unfit(f"{where} has no image_url", _DATA_URL)
    if not url.startswith("data:"):
        # The gateway would fetch it from inside its network, where it can reach more than the client can.
        raise Unfit(f"{where} is the address of a picture; addresses are not fetched", _DATA_URL)
    head, _, body = url.removeprefix("data:").partition(",")
    named, *rest = head.split(";")
    if "base64" not in rest:
        raise Unfit(f"{where} is no data: URL with base64", f"it begins with data:{MEDIA_TYPES[0]};base64,")
    try:
        data = base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise Unfit(f"{where} is no base64: {error}", _DATA_URL) from error
    # Clients often give every picture the same name; what it is shows in what it begins with.
    return Image(media_type=pictures.media_type(data) or named, data=data)
