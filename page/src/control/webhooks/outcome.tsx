import { to } from "../../router.ts";
import { useLoaded } from "../../ui/load.ts";
import { Badge } from "../../ui/parts.tsx";
import type { Transcript } from "../../wire.ts";
import type { Handed } from "./sending.ts";
import { isSettled, TurnBadge, useTurn } from "./turn.tsx";

/** What a sender was told, and what becomes of the delivery. */
export function Outcome({ handed: { status, taken } }: { handed: Handed }) {
  return (
    <div class="delivery-outcome" role="status">
      <p>
        <Badge tone={taken.status === "accepted" ? "good" : "note"}>
          {status} {taken.status}
        </Badge>{" "}
        as <code>{taken.delivery_id}</code>
      </p>
      {taken.status === "ignored" && <p>The route’s events or filters leave it out, so that nothing was started.</p>}
      {Boolean(taken.missing?.length) && (
        <p>
          The prompt names what was not sent: <code>{taken.missing?.join(", ")}</code>
        </p>
      )}
      {taken.session_id && taken.turn_id && <Followed sessionId={taken.session_id} turnId={taken.turn_id} />}
    </div>
  );
}

function Followed({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const turn = useTurn(sessionId);
  return (
    <>
      <p>
        <TurnBadge turn={turn} /> <a href={to.session(sessionId, turnId)}>Open the conversation</a>
      </p>
      {turn?.error && <p>{turn.error}</p>}
      {isSettled(turn) && <Answer sessionId={sessionId} turnId={turnId} />}
    </>
  );
}

function Answer({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const [loaded] = useLoaded<Transcript>(`/api/sessions/${sessionId}/messages`);
  const said = loaded.value.value?.items.filter((each) => each.turn_id === turnId && each.role === "assistant") ?? [];
  if (!said.length) return null;
  return <p class="delivery-said">{said.map((each) => each.text?.trim()).join("\n")}</p>;
}
