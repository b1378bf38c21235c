/** Jobs: prompts that run on a schedule. */

import "./jobs.css";
import { useState } from "preact/hooks";
import { fullMoment } from "../../format.ts";
import { go, to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Badge, Empty, Time, type Tone } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import { attempt } from "../../ui/toast.tsx";
import type { Fired, JobOutcome, JobView } from "../../wire.ts";
import { type Column, Listing, Table, useList } from "../list.tsx";
import { Facts, PageHead, Pending, Section } from "../parts.tsx";
import { JobForm, openTurn, pathOf, RemoveJob, runJob, togglePause } from "./form.tsx";
import { NextRun, Schedule } from "./schedule.tsx";

export function JobsPage({ id }: { id: string | null }) {
  return id ? <JobDetail name={id} /> : <JobList />;
}

type Open = { what: "new" } | { what: "edit" | "remove"; job: JobView } | null;

function JobList() {
  const list = useList<JobView>("/api/jobs");
  const [open, setOpen] = useState<Open>(null);
  const close = () => {
    setOpen(null);
    list.refresh();
  };
  return (
    <>
      <PageHead
        title="Jobs"
        lead="Prompts that run on a schedule. The history shows each run: completed, failed or missed, and why."
      >
        <Button look="main" icon="plus" onClick={() => setOpen({ what: "new" })}>
          New job
        </Button>
      </PageHead>
      <Listing list={list} empty={<NoJobs />}>
        {(items) => (
          <Table label="Jobs" columns={columns(list.refresh, setOpen)} rows={items} keyOf={(each) => each.name} />
        )}
      </Listing>
      {open?.what === "new" && <JobForm onClose={close} />}
      {open?.what === "edit" && <JobForm job={open.job} onClose={close} />}
      {open?.what === "remove" && <RemoveJob job={open.job} onClose={close} />}
    </>
  );
}

function NoJobs() {
  return (
    <Empty icon="clock" title="No jobs yet">
      Run a prompt every morning, every hour or once, such as “Summarise what changed in the workspace since yesterday”.
    </Empty>
  );
}

function columns(refresh: () => void, setOpen: (open: Open) => void): readonly Column<JobView>[] {
  return [
    {
      title: "Name",
      cell: (job) => (
        <a class="job-name" href={to.control("jobs", job.name)}>
          {job.name}
        </a>
      ),
    },
    { title: "When", cell: (job) => <Schedule schedule={job.schedule} /> },
    { title: "Next", cell: (job) => <NextRun job={job} /> },
    { title: "Prompt", wide: true, cell: (job) => <span class="job-prompt">{job.prompt}</span> },
    { title: "", cell: (job) => <JobMenu job={job} refresh={refresh} setOpen={setOpen} /> },
  ];
}

interface JobMenuProps {
  job: JobView;
  refresh: () => void;
  setOpen: (open: Open) => void;
}

function JobMenu({ job, refresh, setOpen }: JobMenuProps) {
  const done = (action: () => Promise<void>) => attempt(action).then(refresh);
  return (
    <Menu
      label={`Actions for ${job.name}`}
      items={[
        { label: "Run now", icon: "play", onSelect: () => done(() => runJob(job.name)) },
        {
          label: job.paused ? "Resume" : "Pause",
          icon: job.paused ? "retry" : "pause",
          onSelect: () => done(() => togglePause(job)),
        },
        { label: "Edit", icon: "edit", onSelect: () => setOpen({ what: "edit", job }) },
        { label: "Remove", icon: "trash", bad: true, onSelect: () => setOpen({ what: "remove", job }) },
      ]}
    />
  );
}

const POLL_MS = 3_000;
const LOG = "log";

/** One job, with its last runs. */
function JobDetail({ name }: { name: string }) {
  const [loaded, reload] = useLoaded<JobView>(pathOf(name), POLL_MS);
  const { value, error } = loaded.value;
  const back = { label: "Jobs", href: to.control("jobs") };
  if (!value) {
    return (
      <>
        <PageHead title={name} back={back} />
        <Pending error={error} onRetry={reload} />
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
        <Actions job={value} reload={reload} />
      </PageHead>
      <div class="panel">
        <Facts facts={factsOf(value)} />
      </div>
      <Section title="Prompt">
        <pre class="panel job-whole">{value.prompt}</pre>
      </Section>
      <Section title="Recent runs">
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
      value: job.deliver && job.deliver !== LOG ? job.deliver : "only its own conversation",
    },
    { name: "Saved", value: <Time at={job.created_at} /> },
  ];
}

function Actions({ job, reload }: { job: JobView; reload: () => Promise<void> }) {
  const [open, setOpen] = useState<"edit" | "remove" | null>(null);
  const done = (action: () => Promise<void>) => attempt(action).then(reload);
  const close = () => {
    setOpen(null);
    reload();
  };
  return (
    <>
      <Button icon="play" look="main" onClick={() => done(() => runJob(job.name))}>
        Run now
      </Button>
      <Button icon={job.paused ? "retry" : "pause"} onClick={() => done(() => togglePause(job))}>
        {job.paused ? "Resume" : "Pause"}
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

const OUTCOMES: Record<JobOutcome, { word: string; tone: Tone; meaning: string }> = {
  due: { word: "Running", tone: "busy", meaning: "" },
  ran: { word: "Completed", tone: "good", meaning: "" },
  failed: { word: "Failed", tone: "bad", meaning: "See its conversation for the reason." },
  missed: {
    word: "Missed",
    tone: "note",
    meaning: "The gateway was not running at that time, and it was too late afterwards.",
  },
};

/** The last runs of a job, newest first. */
function History({ slots }: { slots: readonly Fired[] }) {
  if (slots.length === 0) {
    return (
      <div class="panel">
        <Empty icon="clock" title="No runs yet">
          Run it now to see what it does.
        </Empty>
      </div>
    );
  }
  return <Table label="Runs" columns={COLUMNS} rows={slots} keyOf={(each) => String(each.instant)} />;
}

const COLUMNS: readonly Column<Fired>[] = [
  { title: "When", cell: (slot) => <Time at={slot.instant} as="relative" /> },
  { title: "Outcome", cell: (slot) => <Badge tone={OUTCOMES[slot.outcome].tone}>{OUTCOMES[slot.outcome].word}</Badge> },
  { title: "Note", wide: true, cell: (slot) => <span class="faint">{OUTCOMES[slot.outcome].meaning}</span> },
  { title: "", cell: (slot) => slot.turn_id && <OpenTurn turnId={slot.turn_id} /> },
];

function OpenTurn({ turnId }: { turnId: string }) {
  return (
    <Button small icon="chat" onClick={() => attempt(() => openTurn(turnId))}>
      Open
    </Button>
  );
}
