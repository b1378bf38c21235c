/** Prompts that run by themselves. */

import "./jobs.css";
import { useState } from "preact/hooks";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Empty } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import type { JobView } from "../../wire.ts";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { runJob, turnJob } from "./actions.ts";
import { JobDetail } from "./detail.tsx";
import { JobForm } from "./form.tsx";
import { RemoveJob } from "./removal.tsx";
import { NextRun, Schedule } from "./when.tsx";

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
        lead="Prompts that run by themselves, on a schedule. Each time is kept: it ran, it failed, or it was missed, and why."
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
      Let something run every morning, every hour or once: “Summarise what changed in the workspace since yesterday”.
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
      label={`What to do with ${job.name}`}
      items={[
        { label: "Run now", icon: "play", onSelect: () => done(() => runJob(job.name)) },
        {
          label: job.paused ? "Go on" : "Pause",
          icon: job.paused ? "retry" : "pause",
          onSelect: () => done(() => turnJob(job)),
        },
        { label: "Edit", icon: "edit", onSelect: () => setOpen({ what: "edit", job }) },
        { label: "Remove", icon: "trash", bad: true, onSelect: () => setOpen({ what: "remove", job }) },
      ]}
    />
  );
}
