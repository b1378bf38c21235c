import { fullMoment } from "../format.ts";
import { go, to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import type { SessionView } from "../wire.ts";

/** Says above the composer that a session is over, and how to go on. */
export function Closed({ session }: { session: SessionView }) {
  if (session.state === "open") return null;
  return (
    <div class="closed" role="note">
      <Icon name={session.state === "ended" ? "check" : "pause"} size={16} />
      <span>{said(session)}</span>
      <Button small icon="forward" onClick={() => go(to.new(session.id))}>
        Continue in a new session
      </Button>
    </div>
  );
}

function said(session: SessionView): string {
  if (session.state === "suspended") return "This session was stopped. Your next message begins a new one.";
  const when = session.ended_at ? ` on ${fullMoment(session.ended_at)}` : "";
  return `This session ended${when}. Everything in it is kept.`;
}
