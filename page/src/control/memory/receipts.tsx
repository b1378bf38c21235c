/** Receipts of memory: which conversations still wait to be learned from, and what became of the others. */

import { useState } from "preact/hooks";
import { query } from "../../api.ts";
import { count, plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Badge, Empty, Time } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import type { Counts, MemoryStatus, Owing, SegmentState, SegmentView } from "../../wire.ts";
import { Listing, useList } from "../list.tsx";
import { ErrorNotice, Filter, Section, Skeleton } from "../parts.tsx";
import { backlogText, KINDS } from "./backlog.ts";
import { LearnButton, Segments } from "./segments.tsx";

const POLL_MS = 5_000;
const CHOICES = [
  { value: "", label: "All" },
  { value: "unpaid", label: "Not learned yet" },
  { value: "committed", label: "Learned" },
  { value: "waived", label: "Skipped" },
] as const;
type Chosen = (typeof CHOICES)[number]["value"];

export function Receipts() {
  const [chosen, choose] = useState<Chosen>("");
  const [status, again] = useLoaded<MemoryStatus>("/api/memory/status", POLL_MS);
  const list = useList<SegmentView>(`/api/memory/segments${query(filterOf(chosen))}`, POLL_MS);
  const refresh = () => Promise.all([again(), list.refresh()]);
  const { value, error } = status.value;
  return (
    <>
      {error !== undefined && <ErrorNotice error={error} onRetry={again} />}
      {value ? <MemoryState status={value} onChanged={refresh} /> : error === undefined && <Skeleton />}
      <Section
        title="Conversation parts"
        aside={<Filter label="Which parts" choices={CHOICES} chosen={chosen} onChoose={choose} />}
      >
        <p class="faint">The agent learns from a conversation in parts.</p>
        <Listing list={list} empty={<Nothing />}>
          {(segments) => <Segments segments={segments} onChanged={refresh} />}
        </Listing>
      </Section>
    </>
  );
}

function filterOf(chosen: Chosen): { state?: SegmentState; unpaid?: boolean } {
  if (chosen === "unpaid") return { unpaid: true };
  return chosen === "" ? {} : { state: chosen };
}

function Nothing() {
  return (
    <Empty icon="brain" title="Nothing to learn from yet">
      The agent learns from every answered message once its conversation is over.
    </Empty>
  );
}

const COUNTED: readonly { name: keyof Counts; label: string; meaning: string }[] = [
  { name: "facts", label: "facts", meaning: "in memory" },
  ...KINDS,
  { name: "failed", label: "failed", meaning: "of those waiting, will be retried" },
  { name: "committed", label: "learned", meaning: "saved to memory" },
  { name: "waived", label: "skipped", meaning: "not learned from" },
];

/** The other counts are rare, and shown when they are not zero. */
const ALWAYS: ReadonlySet<string> = new Set(["facts", "open", "owed", "committed"]);

/** The state of memory: its provider, what waits to be learned, and from which conversations. */
function MemoryState({ status, onChanged }: { status: MemoryStatus; onChanged: () => unknown }) {
  const { counts, everyone, owing = [], owing_sessions = 0 } = status;
  return (
    <>
      <Section title="State of memory" aside={<Provider status={status} />}>
        <dl class="tiles">
          {COUNTED.filter(({ name }) => ALWAYS.has(name) || counts[name]).map(({ name, label, meaning }) => (
            <div key={name} class="tile">
              <dt>{label}</dt>
              <dd>{count(Number(counts[name] ?? 0))}</dd>
              <dd class="tile-meaning">{meaning}</dd>
            </div>
          ))}
        </dl>
        {status.provider?.detail && <p class="faint">{status.provider.detail}</p>}
        {everyone && everyone.unpaid !== counts.unpaid && (
          <p class="faint">Of all users of this gateway: {backlogText(everyone)}.</p>
        )}
      </Section>
      <Section title="Waiting conversations">
        {owing.length === 0 && (
          <p class="faint">None. A conversation waits here once it is over or has been quiet for a while.</p>
        )}
        <ul class="owing">
          {owing.map((each) => (
            <li key={each.session_id}>
              <WaitingConversation owing={each} onChanged={onChanged} />
            </li>
          ))}
        </ul>
        {owing_sessions > owing.length && (
          <p class="faint">and {plural(owing_sessions - owing.length, "more", "more")}</p>
        )}
      </Section>
    </>
  );
}

function Provider({ status: { provider } }: { status: MemoryStatus }) {
  if (!provider) return <Badge>No provider</Badge>;
  return (
    <Badge tone={provider.healthy ? "good" : "bad"}>
      {provider.owner}: {provider.healthy ? "connected" : "not responding"}
    </Badge>
  );
}

function WaitingConversation({ owing, onChanged }: { owing: Owing; onChanged: () => unknown }) {
  const { next } = owing;
  return (
    <>
      <div class="owing-text">
        <a href={to.session(owing.session_id)}>{owing.title || owing.key}</a>
        <span class="faint">
          {plural(owing.segments, "part")}
          {next.attempt > 0 && `, ${plural(next.attempt, "failed attempt")}`}
          {next.next_try_at && (
            <>
              , next try <Time at={next.next_try_at} as="relative" />
            </>
          )}
        </span>
        {next.error && <span class="memory-wrong">{next.error}</span>}
      </div>
      {next.parked ? (
        <Badge tone="busy">On hold</Badge>
      ) : (
        <LearnButton sessionId={owing.session_id} onDone={onChanged} />
      )}
    </>
  );
}
