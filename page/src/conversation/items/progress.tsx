/** What a turn is doing: thinking, working, queued, or waiting for its model. */

import { now } from "../../clock.ts";
import { duration } from "../../format.ts";
import type { Item, TextItem, Turn, Wait } from "../../journal/view.ts";
import { stop } from "../../turns/actions.ts";
import { nextTryText } from "../../turns/status.ts";
import { Button } from "../../ui/button.tsx";
import { Disclosure } from "../../ui/folding.tsx";
import { Icon } from "../../ui/icon.tsx";
import { attempt } from "../../ui/toast.tsx";
import { useRemembered } from "../context.ts";
import { Markdown } from "../markdown/markdown.tsx";

/** The status of an active turn, where no item shows it. */
export function Progress({ turn }: { turn: Turn }) {
  if (turn.state === "queued" && turn.wait) return <Waiting turn={turn} wait={turn.wait} />;
  if (turn.state === "queued") return <Queued turn={turn} />;
  if (turn.state !== "running" || isVisiblyActive(turn.items.at(-1))) return null;
  return (
    <p class="progress">
      <span class="dots" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span class="unseen">Working</span>
      <Elapsed since={turn.items.at(-1)?.at ?? turn.acceptedAt} />
    </p>
  );
}

function Queued({ turn }: { turn: Turn }) {
  return (
    <p class="progress">
      <span>{turn.attempt > 0 ? "It resumes in a moment." : "Queued"}</span>
      <Button small onClick={() => attempt(() => stop(turn))}>
        Cancel
      </Button>
    </p>
  );
}

/** The model is unavailable: why, unless a note above says it, and when the next try is. */
function Waiting({ turn, wait }: { turn: Turn; wait: Wait }) {
  const isSaid = turn.items.some((item) => item.role === "note" && item.text.includes(wait.error));
  return (
    <p class="progress">
      <Icon name="clock" size={14} />
      <span>
        Waiting for the model{isSaid ? "" : `: ${wait.error}`}. {nextTryText(wait.retryAt, now.value)}
      </span>
      <Button small onClick={() => attempt(() => stop(turn))}>
        Stop waiting
      </Button>
    </p>
  );
}

/** Streaming text and running calls already show that the turn is active. */
function isVisiblyActive(item: Item | undefined): boolean {
  if (!item) return false;
  return item.role === "assistant" || item.role === "reasoning" || (item.role === "tool" && item.outcome === null);
}

/** Shorter thoughts show no duration. */
const SHOWN_FROM_MS = 1_000;

interface ReasoningProps {
  item: TextItem;
  turnId: string;
  /** The model is thinking now. */
  isLive: boolean;
  /** When the next item began. */
  until: number | null;
}

/** The model's reasoning, folded. */
export function Reasoning({ item, turnId, isLive, until }: ReasoningProps) {
  const [isOpen, setOpen] = useRemembered(`reasoning ${turnId} ${item.key}`, false);
  const head = (
    <>
      <Icon name="brain" size={16} />
      {isLive ? (
        <span class="shimmer">
          Thinking… <Elapsed since={item.at} />
        </span>
      ) : (
        <span>{thought(until === null ? 0 : until - item.at)}</span>
      )}
    </>
  );
  return (
    <Disclosure class="reasoning" isOpen={isOpen} onTurn={setOpen} head={head}>
      <Markdown text={item.text} growing={isLive} />
    </Disclosure>
  );
}

const thought = (ms: number) => (ms < SHOWN_FROM_MS ? "Thought for a moment" : `Thought for ${duration(ms)}`);

const MINUTE_MS = 60_000;

/** The time since something began, counting. */
export function Elapsed({ since }: { since: number }) {
  // The gateway's clock may be ahead of this one.
  const passed = Math.max(0, now.value - since);
  return <span class="elapsed">{passed < 1_000 ? "" : counted(passed)}</span>;
}

const counted = (ms: number) => (ms < MINUTE_MS ? `${Math.floor(ms / 1_000)} s` : duration(ms));
