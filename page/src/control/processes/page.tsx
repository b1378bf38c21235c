/** Commands that run beside the conversations. */

import "./processes.css";
import { signal } from "@preact/signals";
import { query } from "../../api.ts";
import { duration } from "../../format.ts";
import { to } from "../../router.ts";
import { Empty, Time } from "../../ui/parts.tsx";
import type { ProcessState, ProcessView } from "../../wire.ts";
import { Filter } from "../parts/filter.tsx";
import { PageHead } from "../parts/head.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Origin } from "../parts/origin.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { ProcessDetail } from "./detail.tsx";
import { ProcessBadge } from "./state.tsx";
import { ranMs } from "./states.ts";

const CHOICES: readonly { value: ProcessState | ""; label: string }[] = [
  { value: "", label: "All" },
  { value: "running", label: "Running" },
  { value: "exited", label: "Over" },
  { value: "lost", label: "Lost" },
];

/** Kept, so that whoever comes back from a command finds the same list. */
const chosen = signal<ProcessState | "">("");

export function ProcessesPage({ id }: { id: string | null }) {
  return id ? <ProcessDetail id={id} /> : <ProcessList />;
}

function ProcessList() {
  const list = useList<ProcessView>(`/api/processes${query({ state: chosen.value })}`);
  return (
    <>
      <PageHead
        title="Processes"
        lead="Commands that the agent lets run in the background. They go on when the gateway restarts, and nothing that they write is lost."
      />
      <Filter
        label="Show only commands that are"
        choices={CHOICES}
        chosen={chosen.value}
        onChoose={(value) => {
          chosen.value = value;
        }}
      />
      <Listing list={list} empty={<NoProcesses />}>
        {(items) => <Table label="Background commands" columns={COLUMNS} rows={items} keyOf={(each) => each.id} />}
      </Listing>
    </>
  );
}

function NoProcesses() {
  if (chosen.value) return <Empty icon="terminal" title="There are none of these" />;
  return (
    <Empty icon="terminal" title="No command has run in the background yet">
      Ask the agent to start something that takes long, such as a build or a server, in the background.
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
  { title: "From", cell: (each) => <Origin sessionId={each.session_id} turnId={each.turn_id} /> },
  { title: "Started", cell: (each) => <Time at={each.started_at} /> },
  { title: "Ran for", cell: (each) => duration(ranMs(each)) },
];
