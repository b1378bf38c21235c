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
import { showToast } from "../ui/toast.tsx";
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
            Running turns get time to finish. Those that do not are resumed after the restart. New messages are kept.
          </p>
        </Confirm>
      )}
      {start && !asking && <Progress start={start} onBack={onBack} onOver={() => setStart(null)} />}
    </>
  );
}

interface RestartToApplyProps {
  text: string;
  onBack: () => unknown;
}

/** Says that changes wait for a restart, with the button beside it. */
export function RestartToApply({ text, onBack }: RestartToApplyProps) {
  const announce = () => {
    // Nothing waits any more, so this and the dialog of the progress go away.
    showToast("The gateway is back with the new settings.");
    onBack();
  };
  return (
    <div class="restart-to-apply">
      <span>{text}</span>
      <RestartButton look="main" onBack={announce} />
    </div>
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
  const [tookMs, setTookMs] = useState<number | null>(null);
  const [isOpen, setOpen] = useState(true);
  const step = tookMs === null ? stepOf(start.node, gatewayStatus.value) : "back";
  useEffect(() => {
    if (step !== "back" || tookMs !== null) return;
    setTookMs(Date.now() - start.at);
    onBack?.();
    if (!isOpen) onOver();
  }, [step, tookMs, start, isOpen, onBack, onOver]);
  if (!isOpen) return null;
  const close = step === "back" ? onOver : () => setOpen(false);
  return (
    <Dialog title={step === "back" ? "The gateway is back" : "Restarting"} onClose={close}>
      <ol class="restart-steps" aria-live="polite">
        {ORDER.map((each) => (
          <li key={each} class="restart-step" data-done={ORDER.indexOf(each) < ORDER.indexOf(step) || step === "back"}>
            <StepIcon step={each} now={step} />
            {stepText(each, tookMs)}
          </li>
        ))}
      </ol>
      <div class="dialog-actions">
        <Button look={step === "back" ? "main" : "quiet"} onClick={close}>
          {step === "back" ? "Done" : "Hide"}
        </Button>
      </div>
    </Dialog>
  );
}

function StepIcon({ step, now }: { step: Step; now: Step }) {
  if (now === "back" || ORDER.indexOf(step) < ORDER.indexOf(now)) return <Icon name="check" />;
  return step === now ? <Spinner label="In progress" /> : <span class="restart-dot" />;
}

function stepText(step: Step, tookMs: number | null): string {
  switch (step) {
    case "draining":
      return drainText();
    case "away":
      return "Starting";
    case "back":
      return tookMs === null ? "Ready" : `Ready, after ${duration(tookMs)}`;
  }
}

function drainText(): string {
  const drain = gatewayStatus.value.error === undefined ? gatewayStatus.value.value?.drain : null;
  if (!drain?.running) return "Finishing running turns";
  const left = `${Math.max(0, Math.ceil(drain.seconds_left))} s`;
  return `Finishing running turns: ${plural(drain.running, "turn")}, ${left} left`;
}

type Step = "draining" | "away" | "back";

/** Return how far a restart has come.  `node` is the gateway's name before; each start has a new name. */
export function stepOf(node: string, { value, error }: Loaded<Status>): Step {
  if (value && value.node !== node && value.ready && error === undefined) return "back";
  return error === undefined && value?.node === node ? "draining" : "away";
}
