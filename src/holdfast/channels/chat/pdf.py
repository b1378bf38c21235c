"""The text of PDF files.  It is read in a child process, because a file may be made to take time and memory."""

from __future__ import annotations

import io
import logging

import msgspec

from holdfast.errors import Rejected
from holdfast.offload.function import offloadable

READ_MAX_S = 10.0
PAGES_MAX = 200


class PdfFile(msgspec.Struct, kw_only=True):
    """A PDF file; a little more than `chars_max` of its text is returned."""

    content: bytes
    chars_max: int


@offloadable
def read_pdf(file: PdfFile) -> str:
    """Return the text of a PDF file, or its beginning.  Raises `Rejected` where there is none to be had."""
    # Only the child process needs it, and it takes long to import.
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    text = ""
    try:
        reader = pypdf.PdfReader(io.BytesIO(file.content))
        is_encrypted = reader.is_encrypted
        for page in () if is_encrypted else reader.pages[:PAGES_MAX]:
            found = page.extract_text()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - pypdf lacks it.
            text += f"{str(found).strip()}\n"  # pyright: ignore[reportUnknownArgumentType] - As above.
            if len(text) > file.chars_max:
                break
    except MemoryError:
        raise
    except Exception as error:  # A broken file fails in any way.
        raise Rejected("it is broken") from error
    if is_encrypted:
        raise Rejected("it is encrypted")
    if not text.strip():
        raise Rejected("it has no text, so it may be made of pictures")
    return text.strip()
