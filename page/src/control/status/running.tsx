import { sessions } from "../../activity.ts";
import { to } from "../../router.ts";
import { stateOf, toneOf } from "../../sessions/state.tsx";
import { Badge, Time } from "../../ui/parts.tsx";
import type { SessionView } from "../../wire.ts";
import { Section } from "../parts/section.tsx";

/** The conversations in which something goes on. */
export function Running() {
  const active = sessions.value.filter((session) => session.activity !== null);
  return (
    <Section title="At work">
      {active.length === 0 ? (
        <p class="panel faint">Nothing runs at the moment. What is being answered appears here.</p>
      ) : (
        <ul class="panel at-work">
          {active.map((session) => (
            <RunningRow key={session.id} session={session} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function RunningRow({ session }: { session: SessionView }) {
  return (
    <li class="at-work-row">
      <Badge tone={toneOf(session)}>{stateOf(session)}</Badge>
      <a href={to.session(session.id)}>{session.label}</a>
      <span class="faint">{session.channel}</span>
      <span class="faint">
        <Time at={session.updated_at} as="relative" />
      </span>
    </li>
  );
}
