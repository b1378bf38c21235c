/** Restarting the gateway: the button, the confirmation, and the progress. */

import "./restart.css";
import { useEffect, useState } from "preact/hooks";
import { post } from "../api.ts";
import { duration, plural } from "../format.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Spinner } from "../ui/parts.tsx";
import type { Loaded } from "../ui/requests.ts";
import type { Status } from "../wire.ts";
import { gatewayStatus, refreshStatus, useGatewayStatus } from "./gateway_status.ts";
import { Confirm } from "./parts.tsx";

const POLL_MS = 700;
const ORDER: readonly Step[] = ["draining", "away", "back"];

interface RestartProps {
  label?: string;
  look?: "main" | "quiet";
  disabled?: boolean;
  /** Called once the gateway is back. */
  onBack?: () => void;
}

export function RestartButton({ label = "Restart", look = "quiet", disabled = false, onBack }: RestartProps) {
  const [asking, setAsking] = useState(false);
  const [start, setStart] = useState<Start | null>(null);
  return (
    <>
      <Button icon="retry" look={look} disabled={disabled || start !== null} onClick={() => setAsking(true)}>
        {label}
      </Button>
      {asking && (
        <Confirm
          title="Restart the gateway?"
          action="Restart"
          look="main"
          onConfirm={async () => setStart(await requestRestart())}
          onClose={() => setAsking(false)}
        >
          <p>
            What runs gets time to finish. What does not finish in time is resumed after the restart, from where it was.
            Messages that come meanwhile are kept.
          </p>
        </Confirm>
      )}
      {start && !asking && <Progress start={start} onBack={onBack} onOver={() => setStart(null)} />}
    </>
  );
}

interface Start {
  node: string;
  at: number;
}

async function requestRestart(): Promise<Start> {
  await refreshStatus();
  const node = gatewayStatus.peek().value?.node ?? "";
  await post("/api/stop", { restart: true });
  return { node, at: Date.now() };
}

interface ProgressProps {
  start: Start;
  onBack: (() => void) | undefined;
  onOver: () => void;
}

/** Watches until the gateway is back, even when its dialog is closed. */
function Progress({ start, onBack, onOver }: ProgressProps) {
  useGatewayStatus(POLL_MS);
  const [took, setTook] = useState<number | null>(null);
  const [shown, setShown] = useState(true);
  const step = took === null ? stepOf(start.node, gatewayStatus.value) : "back";
  useEffect(() => {
    if (step !== "back" || took !== null) return;
    setTook(Date.now() - start.at);
    onBack?.();
    if (!shown) onOver();
  }, [step, took, start, shown, onBack, onOver]);
  if (!shown) return null;
  const close = step === "back" ? onOver : () => setShown(false);
  return (
    <Dialog title={step === "back" ? "The gateway is back" : "Restarting"} onClose={close}>
      <ol class="restart-steps" aria-live="polite">
        {ORDER.map((each) => (
          <li key={each} class="restart-step" data-done={ORDER.indexOf(each) < ORDER.indexOf(step) || step === "back"}>
            <StepIcon step={each} now={step} />
            {stepText(each, took)}
          </li>
        ))}
      </ol>
      <div class="dialog-actions">
        <Button look={step === "back" ? "main" : "quiet"} onClick={close}>
          {step === "back" ? "Done" : "Continue in the background"}
        </Button>
      </div>
    </Dialog>
  );
}

function StepIcon({ step, now }: { step: Step; now: Step }) {
  if (now === "back" || ORDER.indexOf(step) < ORDER.indexOf(now)) return <Icon name="check" />;
  return step === now ? <Spinner label="At this now" /> : <span class="restart-dot" />;
}

function stepText(step: Step, took: number | null): string {
  switch (step) {
    case "draining":
      return drainText();
    case "away":
      return "Starting again";
    case "back":
      return took === null ? "Ready" : `Ready, after ${duration(took)}`;
  }
}

function drainText(): string {
  const drain = gatewayStatus.value.error === undefined ? gatewayStatus.value.value?.drain : null;
  if (!drain?.running) return "Finishing what runs";
  const left = `${Math.max(0, Math.ceil(drain.seconds_left))} s`;
  return `Finishing what runs: ${plural(drain.running, "turn")}, ${left} left`;
}

type Step = "draining" | "away" | "back";

/** Return how far a restart has come.  `node` is the gateway's name before; each start has a new name. */
export function stepOf(node: string, { value, error }: Loaded<Status>): Step {
  if (value && value.node !== node && value.ready && error === undefined) return "back";
  return error === undefined && value?.node === node ? "draining" : "away";
}
