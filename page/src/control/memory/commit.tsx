import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { tell, tellProblem } from "../../ui/toast.tsx";
import type { Committed } from "../../wire.ts";

/** How long a commit may take: a model reads the whole conversation. */
const PATIENCE_MS = 180_000;

/** Has what a conversation has to remember committed now, whether it is over or not. */
export function CommitButton({ sessionId, onDone }: { sessionId: string; onDone: () => unknown }) {
  const [busy, setBusy] = useState(false);
  const commit = async () => {
    setBusy(true);
    await pay(sessionId);
    await onDone();
    setBusy(false);
  };
  return (
    <Button small disabled={busy} onClick={commit}>
      {busy ? "Committing…" : "Commit now"}
    </Button>
  );
}

async function pay(sessionId: string): Promise<void> {
  try {
    const body = { session_id: sessionId, wait: true };
    const { committed } = await post<Committed>("/api/memory/commit", body, { patienceMs: PATIENCE_MS });
    tell(committed ? "Committed." : "Nothing was committed; the receipt says why.", { bad: !committed });
  } catch (error) {
    tellProblem(error);
  }
}
