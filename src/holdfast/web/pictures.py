"""Pictures that came with messages."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from starlette.responses import Response

from holdfast.core.images import IMAGES_MAX, MEDIA_TYPES
from holdfast.errors import NotFound
from holdfast.ids import TurnId
from holdfast.web.endpoints import Endpoint, EndpointCall

# A picture never changes, so a browser may cache it, for the person who may see it and only while that person is
# signed in.  It is not a page: a script inside it does not run.
PICTURE_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "Authorization, X-Holdfast-Proof",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
_PLACES = tuple(str(place) for place in range(IMAGES_MAX))


class Pictures:
    """The pictures of turns, as they are."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/turns/{id}/images/{number}",
                handle=self.show,
                summary="Show a picture that came with a message, counted from 0",
                gives=bytes,
                media=MEDIA_TYPES,
            )
        ]

    async def show(self, call: EndpointCall) -> Response:
        number = call.name("number")
        if number not in _PLACES:
            raise NotFound(f"a message has {IMAGES_MAX} images at most, and none is called {number!r}")
        image = await call.services.turns.image(TurnId(call.name()), _PLACES.index(number))
        return Response(image.data, headers=PICTURE_HEADERS, media_type=image.media_type)
