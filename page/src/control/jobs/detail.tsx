import { useState } from "preact/hooks";
import { fullMoment } from "../../format.ts";
import { go, to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { useLoaded } from "../../ui/load.ts";
import { Badge, Time } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import type { JobView } from "../../wire.ts";
import { Facts } from "../parts/facts.tsx";
import { PageHead } from "../parts/head.tsx";
import { Pending } from "../parts/pending.tsx";
import { Section } from "../parts/section.tsx";
import { pathOf, runJob, turnJob } from "./actions.ts";
import { JobForm } from "./form.tsx";
import { History } from "./history.tsx";
import { RemoveJob } from "./removal.tsx";
import { NextRun, Schedule } from "./when.tsx";

const LOOK_MS = 3_000;
const LOG = "log";

/** One job, with what became of its last times. */
export function JobDetail({ name }: { name: string }) {
  const [loaded, look] = useLoaded<JobView>(pathOf(name), LOOK_MS);
  const { value, error } = loaded.value;
  const back = { label: "Jobs", href: to.control("jobs") };
  if (!value) {
    return (
      <>
        <PageHead title={name} back={back} />
        <Pending error={error} onRetry={look} />
      </>
    );
  }
  const title = (
    <>
      {value.name} {value.paused && <Badge tone="busy">Paused</Badge>}
    </>
  );
  return (
    <>
      <PageHead title={title} back={back}>
        <Actions job={value} look={look} />
      </PageHead>
      <div class="panel">
        <Facts facts={factsOf(value)} />
      </div>
      <Section title="Prompt">
        <pre class="panel job-whole">{value.prompt}</pre>
      </Section>
      <Section title="Its last times">
        <History slots={value.slots ?? []} />
      </Section>
    </>
  );
}

function factsOf(job: JobView) {
  return [
    { name: "When", value: <Schedule schedule={job.schedule} /> },
    { name: "Next", value: <NextRun job={job} /> },
    { name: "At", value: job.next_at === null || job.paused ? null : fullMoment(job.next_at) },
    {
      name: "Delivers to",
      value: job.deliver && job.deliver !== LOG ? job.deliver : "its own conversation, kept here",
    },
    { name: "Saved", value: <Time at={job.created_at} /> },
  ];
}

function Actions({ job, look }: { job: JobView; look: () => Promise<void> }) {
  const [open, setOpen] = useState<"edit" | "remove" | null>(null);
  const done = (action: () => Promise<void>) => attempt(action).then(look);
  const close = () => {
    setOpen(null);
    look();
  };
  return (
    <>
      <Button icon="play" look="main" onClick={() => done(() => runJob(job.name))}>
        Run now
      </Button>
      <Button icon={job.paused ? "retry" : "pause"} onClick={() => done(() => turnJob(job))}>
        {job.paused ? "Go on" : "Pause"}
      </Button>
      <Button icon="edit" onClick={() => setOpen("edit")}>
        Edit
      </Button>
      <Button icon="trash" look="bad" onClick={() => setOpen("remove")}>
        Remove
      </Button>
      {open === "edit" && <JobForm job={job} onClose={close} />}
      {open === "remove" && (
        <RemoveJob job={job} onClose={() => setOpen(null)} onRemoved={() => go(to.control("jobs"))} />
      )}
    </>
  );
}
