"""The addresses of chat accounts, to which platforms post what people do."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from holdfast.channels.chat.port import Posted
from holdfast.web import requests
from holdfast.web.answers import answer
from holdfast.web.endpoints import Endpoint, EndpointCall

# What people do in one moment; files are fetched, not posted.
BODY_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """How many events a request held."""

    events: int


class ChatRequestEndpoint:
    """The endpoint that chat platforms post to."""

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/channels/{id}",
                handle=self.receive,
                summary="Hand in what people did on a chat platform; the platform proves itself",
                scope=None,
                takes=dict[str, object],
                gives=Received,
            ),
        ]

    async def receive(self, call: EndpointCall) -> Response:
        body = await requests.content(call.request, BODY_MAX)
        requests.require_memory(body)
        posted = Posted(headers=dict(call.request.headers), body=body)
        return answer(Received(events=await call.services.chat_requests.receive(call.name(), posted)))
