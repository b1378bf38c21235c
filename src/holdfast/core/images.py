"""Pictures that come with a message: which are taken, and how many and how large they may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from holdfast.core.intake import Image
from holdfast.errors import Rejected

IMAGES_MAX = 4
BYTES_MAX = 5 * 1024 * 1024
# By what they begin with; only of WebP is the beginning in two places.
_BEGINNINGS: Mapping[bytes, str] = MappingProxyType(
    {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif"}
)
MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def media_type(data: bytes) -> str | None:
    """Return the type of a picture by its content, not its name; None if it is not supported."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)


def check(images: Sequence[Image]) -> None:
    """Raise `Rejected` for pictures that no model would take."""
    if len(images) > IMAGES_MAX:
        raise Rejected(f"a message takes {IMAGES_MAX} images at most, not {len(images)}")
    for number, image in enumerate(images, 1):
        if len(image.data) > BYTES_MAX:
            raise Rejected(f"image {number} has {len(image.data)} bytes; {BYTES_MAX} is the most")
        if image.media_type not in MEDIA_TYPES:
            raise Rejected(f"image {number}: {image.media_type!r} is not one of {', '.join(MEDIA_TYPES)}")
        if (actual := media_type(image.data)) != image.media_type:
            raise Rejected(f"image {number} is not the {image.media_type} it is said to be, but {actual or 'no image'}")
