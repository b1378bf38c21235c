/** Receipts: what conversations owe to memory, what was paid, and what could not be. */

import { useState } from "preact/hooks";
import { query } from "../../api.ts";
import { useLoaded } from "../../ui/load.ts";
import { Empty } from "../../ui/parts.tsx";
import type { MemoryStatus, SegmentState, SegmentView } from "../../wire.ts";
import { Filter } from "../parts/filter.tsx";
import { useList } from "../parts/list.ts";
import { Listing } from "../parts/listing.tsx";
import { Section } from "../parts/section.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { Segments } from "./segments.tsx";
import { Standing } from "./standing.tsx";

const REFRESHED_MS = 5_000;
const CHOICES = [
  { value: "", label: "All" },
  { value: "unpaid", label: "Not paid yet" },
  { value: "committed", label: "Committed" },
  { value: "waived", label: "Waived" },
] as const;
type Chosen = (typeof CHOICES)[number]["value"];

export function Receipts() {
  const [chosen, choose] = useState<Chosen>("");
  const [status, again] = useLoaded<MemoryStatus>("/api/memory/status", REFRESHED_MS);
  const list = useList<SegmentView>(`/api/memory/segments${query(wanted(chosen))}`, REFRESHED_MS);
  const refresh = () => Promise.all([again(), list.refresh()]);
  const { value, error } = status.value;
  return (
    <>
      {error !== undefined && <Trouble error={error} onRetry={again} />}
      {value ? <Standing status={value} onChanged={refresh} /> : error === undefined && <Skeleton />}
      <Section
        title="Segments"
        aside={<Filter label="Which segments" choices={CHOICES} chosen={chosen} onChoose={choose} />}
      >
        <p class="faint">A segment is a stretch of a conversation that is remembered as one.</p>
        <Listing list={list} empty={<Nothing />}>
          {(segments) => <Segments segments={segments} onChanged={refresh} />}
        </Listing>
      </Section>
    </>
  );
}

function wanted(chosen: Chosen): { state?: SegmentState; unpaid?: boolean } {
  if (chosen === "unpaid") return { unpaid: true };
  return chosen === "" ? {} : { state: chosen };
}

function Nothing() {
  return (
    <Empty icon="brain" title="No receipts">
      Every answered message becomes part of a segment, which is committed to memory when its conversation is over.
    </Empty>
  );
}
