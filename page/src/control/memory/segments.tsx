/** The segments that memory learns from, and the button that learns from one now. */

import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { Badge, Time, type Tone } from "../../ui/parts.tsx";
import { showError, showToast } from "../../ui/toast.tsx";
import type { Committed, SegmentView } from "../../wire.ts";
import { type Column, Table } from "../list.tsx";
import { Confirm } from "../parts.tsx";
import { SessionLink } from "../session_link.tsx";

interface SegmentsProps {
  segments: readonly SegmentView[];
  onChanged: () => unknown;
}

/** The segments, each with its result. */
export function Segments({ segments, onChanged }: SegmentsProps) {
  const [waiving, setWaiving] = useState<SegmentView | null>(null);
  return (
    <>
      <Table label="Segments" columns={columns(setWaiving, onChanged)} rows={segments} keyOf={(each) => each.id} />
      {waiving && (
        <Confirm
          title="Waive this debt?"
          action="Waive"
          onConfirm={() => waive(waiving, onChanged)}
          onClose={() => setWaiving(null)}
        >
          What was said in {plural(waiving.turns.length, "turn")} will not be remembered by {waiving.owner}. The
          conversation itself stays.
        </Confirm>
      )}
    </>
  );
}

function columns(onWaive: (segment: SegmentView) => void, onChanged: () => unknown): readonly Column<SegmentView>[] {
  return [
    { title: "State", cell: (each) => <Badge tone={toneOf(each)}>{stateOf(each)}</Badge> },
    {
      title: "Conversation",
      cell: (each) => <SessionLink sessionId={each.session_id} turnId={each.turns[0] ?? null} />,
    },
    { title: "What came of it", wide: true, cell: (each) => <Outcome segment={each} /> },
    { title: "Since", cell: (each) => <Time at={each.settled_at ?? each.created_at} /> },
    { title: "", cell: (each) => <Actions segment={each} onWaive={onWaive} onChanged={onChanged} /> },
  ];
}

interface ActionsProps {
  segment: SegmentView;
  onWaive: (segment: SegmentView) => void;
  onChanged: () => unknown;
}

/** What has not been learned can be learned now; what is waiting can also be skipped. */
function Actions({ segment, onWaive, onChanged }: ActionsProps) {
  const isOwed = segment.state === "sealed";
  return (
    <span class="segment-actions">
      {(isOwed || segment.state === "open") && !segment.parked && (
        <CommitButton sessionId={segment.session_id} onDone={onChanged} />
      )}
      {isOwed && (
        <Button small look="bad" onClick={() => onWaive(segment)}>
          Waive…
        </Button>
      )}
    </span>
  );
}

function Outcome({ segment }: { segment: SegmentView }) {
  const turns = plural(segment.turns.length, "turn");
  if (segment.error && segment.settled_at === null) return <span class="memory-wrong">{segment.error}</span>;
  return <span>{segment.receipt ? `${segment.receipt} (${turns})` : turns}</span>;
}

function stateOf(segment: SegmentView): string {
  if (segment.parked) return "parked";
  if (segment.state === "sealed") return segment.attempt > 0 && segment.error ? "failed" : "owed";
  return segment.state === "open" ? "gathering" : segment.state;
}

function toneOf(segment: SegmentView): Tone {
  const tones: Record<string, Tone> = {
    committed: "good",
    failed: "bad",
    parked: "busy",
    owed: "note",
    committing: "busy",
  };
  return tones[stateOf(segment)] ?? "plain";
}

async function waive(segment: SegmentView, onChanged: () => unknown): Promise<void> {
  await post<SegmentView>(`/api/memory/segments/${segment.id}/waive`);
  showToast("Waived.");
  await onChanged();
}

/** Learning may take this long: a model reads the whole conversation. */
const TIMEOUT_MS = 180_000;

/** Learns from a conversation now, whether it is over or not. */
export function CommitButton({ sessionId, onDone }: { sessionId: string; onDone: () => unknown }) {
  const [busy, setBusy] = useState(false);
  const commit = async () => {
    setBusy(true);
    await learn(sessionId);
    await onDone();
    setBusy(false);
  };
  return (
    <Button small disabled={busy} onClick={commit}>
      {busy ? "Committing…" : "Commit now"}
    </Button>
  );
}

async function learn(sessionId: string): Promise<void> {
  try {
    const body = { session_id: sessionId, wait: true };
    const { committed } = await post<Committed>("/api/memory/commit", body, { timeoutMs: TIMEOUT_MS });
    showToast(committed ? "Committed." : "Nothing was committed; the receipt says why.", { bad: !committed });
  } catch (error) {
    showError(error);
  }
}
