import type { Item, Turn, Wait } from "../../journal/view.ts";
import { stop } from "../../turns/actions.ts";
import { nextTry } from "../../turns/standing.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { attempt } from "../../ui/toast.tsx";
import { now } from "../ticking.ts";
import { Elapsed } from "./elapsed.tsx";

/** How a turn stands that is not over, where nothing else shows it. */
export function Progress({ turn }: { turn: Turn }) {
  if (turn.state === "queued" && turn.wait) return <Waiting turn={turn} wait={turn.wait} />;
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

/** The model cannot answer now: why, unless that stands above already, and when it is asked again. */
function Waiting({ turn, wait }: { turn: Turn; wait: Wait }) {
  const isSaid = turn.items.some((item) => item.role === "note" && item.text.includes(wait.error));
  return (
    <p class="progress">
      <Icon name="clock" size={14} />
      <span>
        Waiting for the model{isSaid ? "" : `: ${wait.error}`}. {nextTry(wait.retryAt, now.value)}
      </span>
      <Button small onClick={() => attempt(() => stop(turn))}>
        Stop waiting
      </Button>
    </p>
  );
}

/** Words that come in, and a call that runs, are seen to be at work. */
function showsItself(item: Item | undefined): boolean {
  if (!item) return false;
  return item.role === "assistant" || item.role === "reasoning" || (item.role === "tool" && item.outcome === null);
}
