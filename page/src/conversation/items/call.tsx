/** A tool call. */

import "../tools/tools.css";
import { duration } from "../../format.ts";
import type { CallItem } from "../../journal/view.ts";
import { Disclosure } from "../../ui/folding.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Badge } from "../../ui/parts.tsx";
import { useRemembered } from "../context.ts";
import { rendererOf } from "../tools/registry.tsx";
import { Elapsed } from "./progress.tsx";

/** Shorter calls show no duration. */
const SHOWN_FROM_MS = 1_000;

interface CallProps {
  call: CallItem;
  turnId: string;
  /** The turn is active, so a call without an outcome is running. */
  isLive: boolean;
}

/** One tool call: a line that names the tool and its subject, and opens to show the rest. */
export function Call({ call, turnId, isLive }: CallProps) {
  const [chosen, setChosen] = useRemembered<boolean | null>(`call ${turnId} ${call.key}`, null);
  const renderer = rendererOf(call.name);
  const isOpen =
    chosen ?? (call.outcome === "error" || call.outcome === "unknown" || (renderer.isOpen?.(call) ?? false));
  const { Body } = renderer;
  const head = (
    <>
      <Icon name={renderer.icon} size={16} />
      <span class="call-name">{renderer.name(call)}</span>
      <span class="call-subject">{renderer.subject(call)}</span>
      <CallStatus call={call} isLive={isLive} said={renderer.outcome?.(call) ?? ""} />
    </>
  );
  return (
    <Disclosure class={`call ${call.outcome ?? "running"}`} isOpen={isOpen} onTurn={setChosen} head={head}>
      {call.outcome === "unknown" && <UnknownOutcome />}
      <Body call={call} turnId={turnId} />
    </Disclosure>
  );
}

function CallStatus({ call, isLive, said }: { call: CallItem; isLive: boolean; said: string }) {
  if (call.outcome === "error") return <Badge tone="bad">{said || "did not work"}</Badge>;
  if (call.outcome === "unknown") return <Badge tone="busy">outcome not known</Badge>;
  if (call.outcome === null && isLive) {
    return (
      <span class="call-live">
        <Elapsed since={call.at} />
        <span class="spinner" role="img" aria-label="Running" />
      </span>
    );
  }
  if (call.outcome === null) return <Badge>not finished</Badge>;
  const took = call.endedAt === null ? 0 : call.endedAt - call.at;
  return <span class="call-outcome">{said || (took >= SHOWN_FROM_MS ? duration(took) : "")}</span>;
}

function UnknownOutcome() {
  return (
    <p class="call-unknown">
      The gateway stopped while this was being done. Nobody can know whether it took effect, so it was not done again.
    </p>
  );
}
