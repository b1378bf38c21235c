import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { duration, fullMoment } from "../../format.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { useLoaded } from "../../ui/load.ts";
import { CopyButton, Time } from "../../ui/parts.tsx";
import { tell } from "../../ui/toast.tsx";
import type { ProcessView } from "../../wire.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/head.tsx";
import { Origin } from "../parts/origin.tsx";
import { Pending } from "../parts/pending.tsx";
import { LiveOutput } from "./output.tsx";
import { ProcessBadge } from "./state.tsx";
import { ranMs } from "./states.ts";

const LOOK_MS = 2_000;
const NOTICE_LOST = "The machine was restarted or its keeper was killed, so nobody knows how this command ended.";

/** One background command, with what it writes. */
export function ProcessDetail({ id }: { id: string }) {
  const [loaded, look] = useLoaded<ProcessView>(`/api/processes/${encodeURIComponent(id)}`, LOOK_MS);
  const { value, error } = loaded.value;
  const back = { label: "Processes", href: to.control("processes") };
  if (!value) {
    return (
      <>
        <PageHead title="Process" back={back} />
        <Pending error={error} onRetry={look} />
      </>
    );
  }
  const title = (
    <>
      Background command <ProcessBadge process={value} />
    </>
  );
  return (
    <>
      <PageHead title={title} back={back} {...(value.state === "lost" ? { lead: NOTICE_LOST } : {})}>
        {value.state === "running" && <EndButton process={value} onEnded={look} />}
      </PageHead>
      <div class="process-line">
        <pre>{value.command}</pre>
        <CopyButton text={() => value.command} label="Copy the command" />
      </div>
      <LiveOutput key={value.id} process={value} />
      <div class="panel">
        <Facts facts={factsOf(value)} />
      </div>
    </>
  );
}

function factsOf(process: ProcessView) {
  return [
    { name: "From", value: <Origin sessionId={process.session_id} turnId={process.turn_id} /> },
    { name: "Folder", value: <code>{process.workdir}</code> },
    { name: "Started", value: <Time at={process.started_at} /> },
    { name: "Ended", value: process.ended_at ? <Time at={process.ended_at} /> : null },
    {
      name: "Ran for",
      value: <span title={`since ${fullMoment(process.started_at)}`}>{duration(ranMs(process))}</span>,
    },
    { name: "Exit code", value: process.exit_code === null ? null : String(process.exit_code) },
    { name: "Process", value: String(process.pid) },
    { name: "When it ends", value: process.notifies ? "The conversation is told" : null },
    { name: "Tells when it prints", value: process.patterns.length > 0 ? process.patterns.join(", ") : null },
  ];
}

function EndButton({ process, onEnded }: { process: ProcessView; onEnded: () => Promise<void> }) {
  const [asking, setAsking] = useState(false);
  const end = async () => {
    await post<ProcessView>(`/api/processes/${encodeURIComponent(process.id)}/kill`);
    tell("The command was ended.");
    await onEnded();
  };
  return (
    <>
      <Button look="bad" icon="stop" onClick={() => setAsking(true)}>
        End it
      </Button>
      {asking && (
        <Confirm title="End this command?" action="End it" onConfirm={end} onClose={() => setAsking(false)}>
          <p>
            <code>{process.command}</code>
          </p>
          <p>It is stopped with everything that it has started. What it has written stays.</p>
        </Confirm>
      )}
    </>
  );
}
