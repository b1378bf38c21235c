/** The buttons below an answer, and the receipt of its turn. */

import { useState } from "preact/hooks";
import { count, duration, fullMoment, price } from "../../format.ts";
import type { Turn } from "../../journal/view.ts";
import { forkThrough, retry } from "../../turns/actions.ts";
import { isOver } from "../../turns/status.ts";
import { IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { CopyButton, Problem } from "../../ui/parts.tsx";
import { useLoaded } from "../../ui/requests.ts";
import { attempt } from "../../ui/toast.tsx";
import type { TurnView } from "../../wire.ts";
import { useConversation } from "../context.ts";

/** The actions on an answer: visible on hover, on focus, and always below the last answer. */
export function Actions({ turn }: { turn: Turn }) {
  const [isTelling, setTelling] = useState(false);
  const conversation = useConversation();
  if (!isOver(turn)) return null;
  const answer = () => answerOf(turn);
  return (
    <>
      <div class="actions">
        {answer() && <CopyButton text={answer} label="Copy the answer" />}
        <IconButton icon="retry" label="Try again" size={16} onClick={() => attempt(() => retry(conversation, turn))} />
        <IconButton
          icon="split"
          label="Fork from here"
          size={16}
          onClick={() => attempt(() => forkThrough(conversation.id, turn.id))}
        />
        <IconButton icon="info" label="Receipt" size={16} onClick={() => setTelling(true)} />
        {turn.endedAt !== null && (
          <span class="actions-time">{duration(turn.endedAt - (turn.startedAt ?? turn.acceptedAt))}</span>
        )}
      </div>
      {isTelling && <TurnReceipt turn={turn} onClose={() => setTelling(false)} />}
    </>
  );
}

/** Return the text of an answer, without reasoning and tool calls. */
export function answerOf(turn: Turn): string {
  return turn.items.flatMap((item) => (item.role === "assistant" ? [item.text] : [])).join("\n\n");
}

/** The receipt of a turn: its status, its times, and its cost. */
function TurnReceipt({ turn, onClose }: { turn: Turn; onClose: () => void }) {
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
    ["State", turn.state + (turn.resumed ? ", after an interruption" : "")],
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
