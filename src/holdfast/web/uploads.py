"""Files that people hand in, for the agent to work with."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.ports import Upload
from holdfast.web.answers import Refused, answer
from holdfast.web.endpoints import Endpoint, EndpointCall

UPLOAD_MAX = 20 * 1024 * 1024
# As long as a slow line needs for that.
UPLOAD_TIMEOUT_S = 120


class UploadEndpoints:
    """Files, as they are."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/uploads",
                handle=self.keep,
                summary="Hand in a file; it is in the workspace when this answers",
                takes=bytes,
                body_max=UPLOAD_MAX,
                body_timeout_s=UPLOAD_TIMEOUT_S,
                gives=Upload,
                status=201,
                query=("name",),
            )
        ]

    async def keep(self, call: EndpointCall) -> Response:
        name = call.word("name")
        if not name:
            raise Refused(400, "bad_parameter", "say what the file is called with ?name=")
        return answer(await call.services.uploads.keep(name, await call.content()), 201)
