/** Holdfast's own notes in a conversation: notices, summaries, and why a turn stopped. */

import { useState } from "preact/hooks";
import { markerText } from "../../journal/items.ts";
import type { MarkerItem, NoteItem } from "../../journal/view.ts";
import { retry } from "../../turns/actions.ts";
import { Button } from "../../ui/button.tsx";
import { Disclosure } from "../../ui/folding.tsx";
import { Icon, type IconName } from "../../ui/icon.tsx";
import { attempt } from "../../ui/toast.tsx";
import type { TurnState } from "../../wire.ts";
import { useConversation } from "../context.ts";
import { Markdown } from "../markdown/markdown.tsx";

/** A note from Holdfast itself. */
export function Note({ item }: { item: NoteItem }) {
  if (item.kind === "compacted") return <Summary text={item.text} />;
  return (
    <div class={item.kind === "banner" ? "notice banner" : "notice"}>
      <Icon name={item.kind === "banner" ? "retry" : "info"} size={16} />
      <div class="notice-text">
        <Markdown text={item.text} />
      </div>
    </div>
  );
}

/**
 * The conversation is longer than the model's context.  All of it is still here; the model reads this summary instead.
 */
function Summary({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const head = (
    <>
      <Icon name="archive" size={16} />
      <span>From here on the model reads a summary of the earlier conversation</span>
    </>
  );
  return (
    <Disclosure class="summary" isOpen={isOpen} onTurn={setOpen} head={head}>
      <Markdown text={text} />
    </Disclosure>
  );
}

const ICONS: Record<MarkerItem["kind"], IconName> = { interrupted: "pause", cancelled: "stop", failed: "warning" };

interface MarkerProps {
  item: MarkerItem;
  turnId: string;
  state: TurnState;
  /** The turn ends with it, so it offers a retry. */
  isLast: boolean;
}

/** Why a turn, or one attempt of it, gave no answer, and what happens next. */
export function Marker({ item, turnId, state, isLast }: MarkerProps) {
  const isOver = isLast && state !== "running" && state !== "queued";
  const conversation = useConversation();
  const isNewest = conversation.turns.value.at(-1)?.id === turnId;
  return (
    <div class={`marker ${item.kind}`}>
      <Icon name={ICONS[item.kind]} size={16} />
      <div class="marker-text">
        <p>{markerText(item)}</p>
        <p class="marker-more">{explanation(item, state, isLast)}</p>
      </div>
      {isNewest && isOver && (
        <Button small icon="retry" onClick={() => attempt(() => retry(conversation, { id: turnId, state }))}>
          {item.kind === "interrupted" ? "Go on" : "Try again"}
        </Button>
      )}
    </div>
  );
}

/** Return the answer to the person's next question. */
function explanation(item: MarkerItem, state: TurnState, isLast: boolean): string {
  if (item.kind !== "interrupted") return item.kind === "cancelled" ? "The answer so far is kept." : "";
  if (item.continues || !isLast) return "Resumed after the restart. It continues below.";
  if (state === "queued") return "It resumes automatically.";
  return "The answer so far is kept.";
}
