import { Badge, type Tone } from "../../ui/parts.tsx";
import type { PageOfTurnView, TurnState, TurnView } from "../../wire.ts";
import { useFollowed } from "./following.ts";

const FOLLOWED_MS = 1_500;
const TONES: Record<TurnState, Tone> = {
  queued: "note",
  running: "busy",
  waiting: "busy",
  completed: "good",
  failed: "bad",
  cancelled: "plain",
  interrupted: "busy",
};
const SETTLED: ReadonlySet<TurnState> = new Set(["completed", "failed", "cancelled"]);

export const isSettled = (turn: TurnView | undefined) => turn !== undefined && SETTLED.has(turn.state);

/** Keep the one turn of a delivery's conversation, until it is over. */
export function useTurn(sessionId: string): TurnView | undefined {
  const path = `/api/turns?session=${sessionId}&limit=1`;
  return useFollowed<PageOfTurnView>(path, FOLLOWED_MS, ({ items }) => isSettled(items[0]))?.items[0];
}

/** How the turn of a delivery stands. */
export function TurnBadge({ turn }: { turn: TurnView | undefined }) {
  if (!turn) return <Badge>…</Badge>;
  return (
    <span title={turn.error ?? undefined}>
      <Badge tone={TONES[turn.state]}>{turn.state === "completed" ? "answered" : turn.state}</Badge>
    </span>
  );
}
