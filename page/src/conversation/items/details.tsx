import { count, duration, fullMoment, price } from "../../format.ts";
import type { Turn } from "../../journal/view.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { useLoaded } from "../../ui/load.ts";
import { CopyButton, Problem } from "../../ui/parts.tsx";
import type { TurnView } from "../../wire.ts";

/** The receipt of a turn: what became of the message, when, and what it took. */
export function Details({ turn, onClose }: { turn: Turn; onClose: () => void }) {
  const [loaded] = useLoaded<TurnView>(`/api/turns/${encodeURIComponent(turn.id)}`);
  const { value, error } = loaded.value;
  const rows = facts(turn, value);
  return (
    <Dialog title="Receipt" onClose={onClose}>
      <dl class="turn-receipt">
        {rows.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
        <div>
          <dt>Turn</dt>
          <dd class="receipt-id">
            <code>{turn.id}</code>
            <CopyButton text={() => turn.id} label="Copy the turn's id" />
          </dd>
        </div>
      </dl>
      {error !== undefined && <Problem error={error} />}
    </Dialog>
  );
}

function facts(turn: Turn, view: TurnView | undefined): [string, string][] {
  const { used } = turn;
  const answered = view?.answered_at ?? turn.endedAt;
  const tokens = `${count(used.input)} in${used.cached ? ` (${count(used.cached)} cached)` : ""}, ${count(used.output)} out`;
  const rows: [string, string | null][] = [
    ["State", turn.state + (turn.resumed ? ", after it was cut off" : "")],
    ["Accepted", fullMoment(turn.acceptedAt)],
    ["Started", turn.startedAt && fullMoment(turn.startedAt)],
    ["Answered", answered && `${fullMoment(answered)} (after ${duration(answered - turn.acceptedAt)})`],
    ["Delivered", view?.delivered_at ? fullMoment(view.delivered_at) : null],
    ["Model", used.model],
    ["Tokens", used.input || used.output ? tokens : null],
    ["Cost", used.costMicros ? price(used.costMicros) : null],
    ["Error", turn.error],
  ].map(([name, text]) => [String(name), text ? String(text) : null]);
  return rows.filter((row): row is [string, string] => row[1] !== null);
}
