"""A turn that is cancelled while its model speaks is over for every reader, and nothing of it is in the next answer."""

from __future__ import annotations

from pathlib import Path

from tests.openai.cancels import NEXT_SAID, Conversation, cancelled_in_mid_stream

CONVERSATIONS = 3


async def test_a_cancel_in_the_middle_of_a_stream_is_final_for_every_reader(home: Path) -> None:
    """J1 J9: what was shown stays, and the words that were on their way are shown nowhere, though they were on disk."""
    async with cancelled_in_mid_stream(home, CONVERSATIONS) as (house, client, conversations):
        for each in conversations:
            assert each.said.startswith(" word")
            assert each.said_next == NEXT_SAID
            assert words_after_the_cancel(each) == NEXT_SAID
            # Who reads it now reads what was shown then.
            assert await house.said(each.session_id, each.turn_id) == each.said
        for each in conversations[1::2]:
            assert (await client.responses.retrieve(f"resp_{each.turn_id}")).output_text == each.said


def words_after_the_cancel(conversation: Conversation) -> str:
    """Return what a reader prints below the cancel that prints each entry as it comes."""
    kinds = [entry["kind"] for entry in conversation.events]
    after = conversation.events[kinds.index("turn.cancelled") :]
    return "".join(entry["data"]["text"] for entry in after if entry["kind"] == "text")
