import { useState } from "preact/hooks";
import { duration } from "../../format.ts";
import type { Turn } from "../../journal/view.ts";
import { forkThrough, retry } from "../../turns/actions.ts";
import { isOver } from "../../turns/standing.ts";
import { IconButton } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import { useTalk } from "../context.ts";
import { Details } from "./details.tsx";

/** What can be done about an answer: seen with the pointer over it, with the focus in it, and always below the last one. */
export function Actions({ turn }: { turn: Turn }) {
  const [isTelling, setTelling] = useState(false);
  const conversation = useTalk();
  if (!isOver(turn)) return null;
  const said = () => answerOf(turn);
  return (
    <>
      <div class="actions">
        {said() && <CopyButton text={said} label="Copy the answer" />}
        <IconButton icon="retry" label="Try again" size={16} onClick={() => attempt(() => retry(conversation, turn))} />
        <IconButton
          icon="split"
          label="Fork from here"
          size={16}
          onClick={() => attempt(() => forkThrough(conversation.id, turn.id))}
        />
        <IconButton icon="info" label="Receipt" size={16} onClick={() => setTelling(true)} />
        {turn.endedAt !== null && (
          <span class="actions-time">{duration(turn.endedAt - (turn.startedAt ?? turn.acceptedAt))}</span>
        )}
      </div>
      {isTelling && <Details turn={turn} onClose={() => setTelling(false)} />}
    </>
  );
}

/** Return all that was said in a turn, without what was thought and done between. */
export function answerOf(turn: Turn): string {
  return turn.items.flatMap((item) => (item.role === "assistant" ? [item.text] : [])).join("\n\n");
}
