"""`holdfast ask`: one question, to the running gateway or to one in this process."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.answer import conclude
from holdfast.cli.chat import DEFAULT_KEY, open_session
from holdfast.cli.frame import Frame, print_json, print_text, with_json
from holdfast.core import images as pictures
from holdfast.core.intake import Busy, Image
from holdfast.errors import Rejected
from holdfast.operations.sessions import Message


@click.command()
@click.argument("text")
@click.option(
    "--session", "key", default=DEFAULT_KEY, show_default=True, help="The conversation to continue: its key or id."
)
@click.option(
    "--busy", type=click.Choice([each.value for each in Busy]), help="What to do while an earlier message is being answered."
)
@click.option(
    "--image",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"A picture to look at: PNG, JPEG, GIF or WebP; {pictures.IMAGES_MAX} at most.",
)
@with_json
async def ask(frame: Frame, text: str, key: str, busy: str | None, files: tuple[Path, ...], as_json: bool) -> None:
    """Ask one question.  The answer goes to stdout; the exit code is 0 if the turn completed."""
    images = tuple(read_image(file) for file in files)
    async with frame.services() as services:
        session = await open_session(services, key)
        receipt = await services.sessions.send(
            session.id, Message(text=text, busy=Busy(busy) if busy else None, images=images)
        )
        if receipt.reply is not None and not receipt.turn_id:
            print_json(receipt) if as_json else print_text(f"{receipt.reply}\n")
            return
        await conclude(services, session, receipt, as_json)


def read_image(file: Path) -> Image:
    """Return the picture in a file, by its content, not its name.  Raises `Rejected` if it is not a picture."""
    if file.stat().st_size > pictures.BYTES_MAX:
        raise Rejected(f"{file} is too large: an image has {pictures.BYTES_MAX} bytes at most")
    data = file.read_bytes()
    if (kind := pictures.media_type(data)) is None:
        raise Rejected(f"{file} is not an image: {', '.join(pictures.MEDIA_TYPES)} are taken")
    return Image(media_type=kind, data=data)
