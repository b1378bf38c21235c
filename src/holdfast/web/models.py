"""The models that clients may ask for."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from holdfast.channels.openai import models
from holdfast.web.answers import answer
from holdfast.web.endpoints import Endpoint, EndpointCall
from holdfast.web.turn_reader import parsing


class Models:
    """The gateway under each of its names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/v1/models",
                handle=self.list,
                summary="List the models that may be asked for",
                gives=models.ModelList,
            ),
            Endpoint(
                method="GET",
                # A name may have a slash in it, as those of model hubs do.
                path="/v1/models/{id:path}",
                handle=self.show,
                summary="Show one model",
                gives=models.ModelEntry,
            ),
        ]

    async def list(self, _call: EndpointCall) -> Response:
        return answer(models.listed(self._names))

    async def show(self, call: EndpointCall) -> Response:
        name = call.name()
        with parsing():
            models.check(name, self._names)
        return answer(models.ModelEntry(id=name))
