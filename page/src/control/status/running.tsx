import { Unanswered } from "../../api.ts";
import { to } from "../../router.ts";
import { useLoaded } from "../../ui/load.ts";
import { Badge, Time, type Tone } from "../../ui/parts.tsx";
import type { PageOfSessionView, SessionView } from "../../wire.ts";
import { Section } from "../parts/section.tsx";
import { Trouble } from "../parts/trouble.tsx";

const LOOK_MS = 3_000;
/** Whatever runs was used lately, and lists begin with that. */
const LATEST = 100;

type Activity = NonNullable<SessionView["activity"]>;

const TONES: Record<Activity, Tone> = { running: "busy", waiting: "note", queued: "plain" };
const WORDS: Record<Activity, string> = { running: "Running", waiting: "Waiting for you", queued: "Queued" };

/** The conversations in which something goes on. */
export function Running() {
  const [loaded, look] = useLoaded<PageOfSessionView>(`/api/sessions?limit=${LATEST}`, LOOK_MS);
  const { value, error } = loaded.value;
  const active = value?.items.filter((session) => session.activity !== null) ?? [];
  return (
    <Section title="At work">
      {error !== undefined && value === undefined && <Unknown error={error} onRetry={look} />}
      {value && active.length === 0 && (
        <p class="panel faint">Nothing runs at the moment. What is being answered appears here.</p>
      )}
      {active.length > 0 && (
        <ul class="panel at-work">
          {active.map((session) => (
            <RunningRow key={session.id} session={session} activity={session.activity!} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** The top of the page says already when the gateway is away. */
function Unknown({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  if (!(error instanceof Unanswered)) return <Trouble error={error} onRetry={onRetry} />;
  return <p class="panel faint">Not known while the gateway is away.</p>;
}

function RunningRow({ session, activity }: { session: SessionView; activity: Activity }) {
  return (
    <li class="at-work-row">
      <Badge tone={TONES[activity]}>{WORDS[activity]}</Badge>
      <a href={to.session(session.id)}>{session.label}</a>
      <span class="faint">{session.channel}</span>
      <span class="faint">
        <Time at={session.updated_at} as="relative" />
      </span>
    </li>
  );
}
