"""Files that people hand in, for the agent to work with."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.core.trust import trusts
from holdfast.errors import NotTrusted, Unavailable
from holdfast.operations.caller import Caller

if TYPE_CHECKING:
    # A command that asks a running gateway does not import these.
    from holdfast.ports import Upload, Uploads


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFiles:
    """The files of the caller.  They are bytes as they are, so their endpoint is written by hand."""

    caller: Caller
    workspace: Uploads | None = None
    trusted_owners: Container[str] = ()

    async def keep(self, name: str, content: bytes) -> Upload:
        """Keep a file where the agent's tools find it.  Raises `NotTrusted` where its turns have no such tools."""
        if not trusts(self.caller.owner, self.trusted_owners):
            raise NotTrusted("files are handed in to the workspace, which is for those whom the operator trusts with it")
        if self.workspace is None:
            raise Unavailable("this gateway has no workspace")
        return await self.workspace.keep(name, content)
