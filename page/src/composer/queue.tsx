import type { Turn } from "../journal/view.ts";
import { stop } from "../turns/actions.ts";
import { inLine, messageOf } from "../turns/standing.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";

/** The messages that wait until what runs is over; each can still be taken back. */
export function Queue({ turns }: { turns: readonly Turn[] }) {
  const waiting = inLine(turns);
  if (!waiting.length) return null;
  return (
    <ul class="queue" aria-label="Messages in line">
      {waiting.map((turn) => (
        <li key={turn.id}>
          <Icon name="clock" size={15} />
          <span class="queue-text">{messageOf(turn)?.text}</span>
          <span class="queue-state">in line</span>
          <IconButton
            icon="close"
            size={14}
            label={`Take back: ${messageOf(turn)?.text}`}
            onClick={() => attempt(() => stop(turn))}
          />
        </li>
      ))}
    </ul>
  );
}
