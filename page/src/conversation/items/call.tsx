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
      <CallStatus call={call} isLive={isLive} outcome={renderer.outcome?.(call) ?? ""} />
    </>
  );
  return (
    <Disclosure class={`call ${call.outcome ?? "running"}`} isOpen={isOpen} onTurn={setChosen} head={head}>
      {call.outcome === "unknown" && <UnknownOutcome />}
      <Body call={call} turnId={turnId} />
    </Disclosure>
  );
}

function CallStatus({ call, isLive, outcome }: { call: CallItem; isLive: boolean; outcome: string }) {
  if (call.outcome === "error") return <Badge tone="bad">{outcome || "failed"}</Badge>;
  if (call.outcome === "unknown") return <Badge tone="busy">unknown outcome</Badge>;
  if (call.outcome === null && isLive) {
    return (
      <span class="call-live">
        <Elapsed since={call.at} />
        <span class="spinner" role="img" aria-label="Running" />
      </span>
    );
  }
  if (call.outcome === null) return <Badge>not finished</Badge>;
  const tookMs = call.endedAt === null ? 0 : call.endedAt - call.at;
  return <span class="call-outcome">{outcome || (tookMs >= SHOWN_FROM_MS ? duration(tookMs) : "")}</span>;
}

function UnknownOutcome() {
  return (
    <p class="call-unknown">
      The gateway stopped during this call, so it is unknown whether it took effect. It was not repeated.
    </p>
  );
}
