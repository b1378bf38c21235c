import type { Item, Turn } from "../../journal/view.ts";
import { stop } from "../../turns/actions.ts";
import { Button } from "../../ui/button.tsx";
import { attempt } from "../../ui/toast.tsx";
import { Elapsed } from "./elapsed.tsx";

/** How a turn stands that is not over, where nothing else shows it. */
export function Progress({ turn }: { turn: Turn }) {
  if (turn.state === "queued") return <Queued turn={turn} />;
  if (turn.state !== "running" || showsItself(turn.items.at(-1))) return null;
  return (
    <p class="progress">
      <span class="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span class="unseen">At work</span>
      <Elapsed since={turn.items.at(-1)?.at ?? turn.acceptedAt} />
    </p>
  );
}

function Queued({ turn }: { turn: Turn }) {
  return (
    <p class="progress">
      <span>{turn.attempt > 0 ? "It goes on in a moment." : "In line: the agent comes to it as soon as it can."}</span>
      <Button small onClick={() => attempt(() => stop(turn))}>
        Take back
      </Button>
    </p>
  );
}

/** Words that come in, and a call that runs, are seen to be at work. */
function showsItself(item: Item | undefined): boolean {
  if (!item) return false;
  return item.role === "assistant" || item.role === "reasoning" || (item.role === "tool" && item.outcome === null);
}
