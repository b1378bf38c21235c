/** How the gateway is, and what it still has to do. */

import "./status.css";
import { Unanswered } from "../../api.ts";
import { operator } from "../../me.ts";
import { Badge, type Tone } from "../../ui/parts.tsx";
import type { Status } from "../../wire.ts";
import { PageHead } from "../parts/head.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { RestartButton } from "../restart/restart.tsx";
import { Conservation } from "./conservation.tsx";
import { glance, look } from "./glance.ts";
import { Agent, BootReport, House } from "./house.tsx";
import { Owed } from "./owed.tsx";
import { Running } from "./running.tsx";

export function StatusPage() {
  const { value, error } = glance.value;
  return (
    <>
      <PageHead
        title={
          <>
            Status <State status={value} away={error !== undefined} />
          </>
        }
        lead="What goes on, what is still owed, and whether every message is accounted for."
      >
        {operator.value && <RestartButton disabled={!value || error !== undefined} />}
      </PageHead>
      {error !== undefined && <Away error={error} known={value !== undefined} />}
      {value?.problem && <p class="problem">{value.problem}</p>}
      {value?.damage?.map((each) => (
        <p class="problem" key={each}>
          The store is damaged: {each}
        </p>
      ))}
      {value ? <Everything status={value} /> : error === undefined && <Skeleton lines={6} />}
    </>
  );
}

function Away({ error, known }: { error: unknown; known: boolean }) {
  if (!(error instanceof Unanswered) || !known) return <Trouble error={error} onRetry={look} />;
  return (
    <p class="status-away" role="status">
      The gateway does not answer at the moment. What is shown here is from before; it is looked for again all the time.
    </p>
  );
}

/** Somebody who shares the gateway of another is told no more than that it is there. */
function Everything({ status }: { status: Status }) {
  return (
    <>
      {status.obligations && (
        <>
          <Conservation status={status} />
          <Owed status={status} />
        </>
      )}
      <Running />
      {status.agent?.model && <Agent agent={status.agent} />}
      <House status={status} />
      {status.boot && status.boot.length > 0 && <BootReport lines={status.boot} />}
    </>
  );
}

function State({ status, away }: { status: Status | undefined; away: boolean }) {
  const [tone, word] = stateOf(status, away);
  return <Badge tone={tone}>{word}</Badge>;
}

function stateOf(status: Status | undefined, away: boolean): [Tone, string] {
  if (away) return ["bad", "Does not answer"];
  if (!status) return ["plain", "Looking…"];
  if (status.state === "draining") return ["busy", status.drain?.restart ? "Restarting" : "Stopping"];
  if (status.problem) return ["bad", "Not ready"];
  return status.ready ? ["good", "Ready"] : ["busy", "Starting"];
}
