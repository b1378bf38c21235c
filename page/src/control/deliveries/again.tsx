import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { attempt, tell } from "../../ui/toast.tsx";
import type { Delivery } from "../../wire.ts";

/** Send something again that was given up. */
export function SendAgain({ delivery, onSent }: { delivery: Delivery; onSent: () => void }) {
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    const path = `/api/deliveries/${encodeURIComponent(delivery.id)}/retry`;
    if (await attempt(() => post<Delivery>(path))) tell(`It is being sent to ${delivery.target} again.`);
    setBusy(false);
    onSent();
  };
  return (
    <Button small icon="retry" disabled={busy} onClick={send}>
      Send again
    </Button>
  );
}
