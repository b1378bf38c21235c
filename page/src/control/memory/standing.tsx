import { count, plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Badge, Time } from "../../ui/parts.tsx";
import type { Counts, MemoryStatus, Owing } from "../../wire.ts";
import { Section } from "../parts/section.tsx";
import { CommitButton } from "./commit.tsx";
import { inWords, KINDS } from "./debt.ts";

const COUNTED: readonly { name: keyof Counts; label: string; meaning: string }[] = [
  { name: "facts", label: "facts", meaning: "remembered now" },
  ...KINDS,
  { name: "failed", label: "failed", meaning: "of those owed, tried in vain and tried again" },
  { name: "committed", label: "committed", meaning: "paid, with a receipt" },
  { name: "waived", label: "waived", meaning: "given up" },
];

/** The others are rare, and shown when there are any. */
const ALWAYS: ReadonlySet<string> = new Set(["facts", "open", "owed", "committed"]);

/** How memory stands: who remembers, how much is owed, and which conversations owe it. */
export function Standing({ status, onChanged }: { status: MemoryStatus; onChanged: () => unknown }) {
  const { counts, everyone, owing = [], owing_sessions = 0 } = status;
  return (
    <>
      <Section title="How memory stands" aside={<Provider status={status} />}>
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
          <p class="faint">Of everyone who uses this gateway: {inWords(everyone)}.</p>
        )}
      </Section>
      <Section title="Conversations that owe">
        {owing.length === 0 && (
          <p class="faint">
            None. What is gathering is owed once its conversation is over, or has been silent for a while.
          </p>
        )}
        <ul class="owing">
          {owing.map((each) => (
            <li key={each.session_id}>
              <Debt owing={each} onChanged={onChanged} />
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
      {provider.owner}: {provider.healthy ? "well" : "does not answer"}
    </Badge>
  );
}

function Debt({ owing, onChanged }: { owing: Owing; onChanged: () => unknown }) {
  const { next } = owing;
  return (
    <>
      <div class="owing-text">
        <a href={to.session(owing.session_id)}>{owing.title || owing.key}</a>
        <span class="faint">
          {plural(owing.segments, "segment")}
          {next.attempt > 0 && `, tried ${plural(next.attempt, "time")}`}
          {next.next_try_at && (
            <>
              , next try <Time at={next.next_try_at} as="relative" />
            </>
          )}
        </span>
        {next.error && <span class="memory-wrong">{next.error}</span>}
      </div>
      {next.parked ? (
        <Badge tone="busy">Parked</Badge>
      ) : (
        <CommitButton sessionId={owing.session_id} onDone={onChanged} />
      )}
    </>
  );
}
