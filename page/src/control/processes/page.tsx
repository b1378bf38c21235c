/** Processes: commands that run in the background. */

import "./processes.css";
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { post, query } from "../../api.ts";
import { duration, fullMoment } from "../../format.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { Badge, CopyButton, Empty, Time, type Tone } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import { showToast } from "../../ui/toast.tsx";
import type { ProcessState, ProcessView } from "../../wire.ts";
import { type Column, Listing, Table, useList } from "../list.tsx";
import { Confirm, Facts, Filter, PageHead, Pending } from "../parts.tsx";
import { SessionLink } from "../session_link.tsx";
import { LiveOutput } from "./output.tsx";

const CHOICES: readonly { value: ProcessState | ""; label: string }[] = [
  { value: "", label: "All" },
  { value: "running", label: "Running" },
  { value: "exited", label: "Ended" },
  { value: "lost", label: "Lost" },
];

/** Module state, so that the filter survives a visit to one command. */
const stateFilter = signal<ProcessState | "">("");

export function ProcessesPage({ id }: { id: string | null }) {
  return id ? <ProcessDetail id={id} /> : <ProcessList />;
}

function ProcessList() {
  const list = useList<ProcessView>(`/api/processes${query({ state: stateFilter.value })}`);
  return (
    <>
      <PageHead
        title="Processes"
        lead="Commands that the agent runs in the background. They keep running when the gateway restarts, and their output is saved."
      />
      <Filter
        label="Show only commands that are"
        choices={CHOICES}
        chosen={stateFilter.value}
        onChoose={(value) => {
          stateFilter.value = value;
        }}
      />
      <Listing list={list} empty={<NoProcesses />}>
        {(items) => <Table label="Background commands" columns={COLUMNS} rows={items} keyOf={(each) => each.id} />}
      </Listing>
    </>
  );
}

function NoProcesses() {
  if (stateFilter.value) return <Empty icon="terminal" title="No such commands" />;
  return (
    <Empty icon="terminal" title="No background commands yet">
      Ask the agent to run something long, such as a build or a server, in the background.
    </Empty>
  );
}

const COLUMNS: readonly Column<ProcessView>[] = [
  { title: "State", cell: (each) => <ProcessBadge process={each} /> },
  {
    title: "Command",
    wide: true,
    cell: (each) => (
      <a class="rows-link" href={to.control("processes", each.id)}>
        <code>{each.command}</code>
      </a>
    ),
  },
  { title: "From", cell: (each) => <SessionLink sessionId={each.session_id} turnId={each.turn_id} /> },
  { title: "Started", cell: (each) => <Time at={each.started_at} /> },
  { title: "Ran for", cell: (each) => duration(ranMs(each)) },
];

const POLL_MS = 2_000;
const NOTICE_LOST = "The machine was restarted or its supervisor was killed, so the exit code is not known.";

/** One background command, with its output. */
function ProcessDetail({ id }: { id: string }) {
  const [loaded, reload] = useLoaded<ProcessView>(`/api/processes/${encodeURIComponent(id)}`, POLL_MS);
  const { value, error } = loaded.value;
  const back = { label: "Processes", href: to.control("processes") };
  if (!value) {
    return (
      <>
        <PageHead title="Process" back={back} />
        <Pending error={error} onRetry={reload} />
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
        {value.state === "running" && <EndButton process={value} onEnded={reload} />}
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
    { name: "From", value: <SessionLink sessionId={process.session_id} turnId={process.turn_id} /> },
    { name: "Folder", value: <code>{process.workdir}</code> },
    { name: "Started", value: <Time at={process.started_at} /> },
    { name: "Ended", value: process.ended_at ? <Time at={process.ended_at} /> : null },
    {
      name: "Ran for",
      value: <span title={`since ${fullMoment(process.started_at)}`}>{duration(ranMs(process))}</span>,
    },
    { name: "Exit code", value: process.exit_code === null ? null : String(process.exit_code) },
    { name: "Process", value: String(process.pid) },
    { name: "On exit", value: process.notifies ? "The conversation is notified" : null },
    { name: "Notifies on output", value: process.patterns.length > 0 ? process.patterns.join(", ") : null },
  ];
}

function EndButton({ process, onEnded }: { process: ProcessView; onEnded: () => Promise<void> }) {
  const [asking, setAsking] = useState(false);
  const end = async () => {
    await post<ProcessView>(`/api/processes/${encodeURIComponent(process.id)}/kill`);
    showToast("The command was stopped.");
    await onEnded();
  };
  return (
    <>
      <Button look="bad" icon="stop" onClick={() => setAsking(true)}>
        Stop
      </Button>
      {asking && (
        <Confirm title="Stop this command?" action="Stop" onConfirm={end} onClose={() => setAsking(false)}>
          <p>
            <code>{process.command}</code>
          </p>
          <p>It is stopped with all its child processes. Its output stays.</p>
        </Confirm>
      )}
    </>
  );
}

function ProcessBadge({ process }: { process: ProcessView }) {
  const { word, tone } = processState(process);
  return <Badge tone={tone}>{word}</Badge>;
}

/** Return the state of a command in a word or two. */
function processState({ state, exit_code: code }: ProcessView): { word: string; tone: Tone } {
  switch (state) {
    case "running":
      return { word: "Running", tone: "busy" };
    case "lost":
      return { word: "Lost", tone: "bad" };
    case "exited":
      return code === 0 ? { word: "Done", tone: "good" } : { word: `Exit ${code ?? "unknown"}`, tone: "bad" };
  }
}

/** Return how long it has run. */
const ranMs = ({ started_at: start, ended_at: end }: ProcessView, now = Date.now()) =>
  Math.max(0, (end ?? now) - start);
