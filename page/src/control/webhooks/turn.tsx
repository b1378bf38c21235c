import { useLoaded } from "../../ui/load.ts";
import { Badge, type Tone } from "../../ui/parts.tsx";
import type { PageOfTurnView, TurnState, TurnView } from "../../wire.ts";

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

/** How the one turn of a delivery's conversation stands; it is followed until it is over. */
export function TurnBadge({ sessionId }: { sessionId: string }) {
  const [loaded] = useLoaded<PageOfTurnView>(`/api/turns?session=${sessionId}&limit=1`, FOLLOWED_MS);
  const turn = loaded.value.value?.items[0];
  if (!turn) return <Badge>…</Badge>;
  return (
    <span title={turn.error ?? undefined}>
      <Badge tone={TONES[turn.state]}>{nameOf(turn)}</Badge>
    </span>
  );
}

const nameOf = (turn: TurnView) => (turn.state === "completed" ? "answered" : turn.state);
