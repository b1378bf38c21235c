/** The segments that memory learns from, and the button that learns from one now. */

import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { Badge, Time, type Tone } from "../../ui/parts.tsx";
import { showError, showToast } from "../../ui/toast.tsx";
import type { Committed, SegmentState, SegmentView } from "../../wire.ts";
import { type Column, Table } from "../list.tsx";
import { Confirm } from "../parts.tsx";
import { SessionLink } from "../session_link.tsx";

interface SegmentsProps {
  segments: readonly SegmentView[];
  onChanged: () => unknown;
}

/** The segments, each with its result. */
export function Segments({ segments, onChanged }: SegmentsProps) {
  const [skipping, setSkipping] = useState<SegmentView | null>(null);
  return (
    <>
      <Table
        label="Conversation parts"
        columns={columns(setSkipping, onChanged)}
        rows={segments}
        keyOf={(each) => each.id}
      />
      {skipping && (
        <Confirm
          title="Skip this part?"
          action="Skip"
          onConfirm={() => skip(skipping, onChanged)}
          onClose={() => setSkipping(null)}
        >
          The content of {plural(skipping.turns.length, "turn")} will not be remembered by {skipping.owner}. The
          conversation itself stays.
        </Confirm>
      )}
    </>
  );
}

function columns(onSkip: (segment: SegmentView) => void, onChanged: () => unknown): readonly Column<SegmentView>[] {
  return [
    { title: "State", cell: (each) => <Badge tone={stateOf(each).tone}>{stateOf(each).word}</Badge> },
    {
      title: "Conversation",
      cell: (each) => <SessionLink sessionId={each.session_id} turnId={each.turns[0] ?? null} />,
    },
    { title: "Result", wide: true, cell: (each) => <Outcome segment={each} /> },
    { title: "Since", cell: (each) => <Time at={each.settled_at ?? each.created_at} /> },
    { title: "", cell: (each) => <Actions segment={each} onSkip={onSkip} onChanged={onChanged} /> },
  ];
}

interface ActionsProps {
  segment: SegmentView;
  onSkip: (segment: SegmentView) => void;
  onChanged: () => unknown;
}

/** What has not been learned can be learned now; what is waiting can also be skipped. */
function Actions({ segment, onSkip, onChanged }: ActionsProps) {
  const isOwed = segment.state === "sealed";
  return (
    <span class="segment-actions">
      {(isOwed || segment.state === "open") && !segment.parked && (
        <LearnButton sessionId={segment.session_id} onDone={onChanged} />
      )}
      {isOwed && (
        <Button small look="bad" onClick={() => onSkip(segment)}>
          Skip…
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

const STATES: Record<SegmentState | "failed" | "parked", { word: string; tone: Tone }> = {
  open: { word: "in progress", tone: "plain" },
  sealed: { word: "waiting", tone: "note" },
  failed: { word: "failed", tone: "bad" },
  parked: { word: "on hold", tone: "busy" },
  committing: { word: "being learned", tone: "busy" },
  committed: { word: "learned", tone: "good" },
  waived: { word: "skipped", tone: "plain" },
};

function stateOf({ parked, state, attempt, error }: SegmentView) {
  if (parked) return STATES.parked;
  return STATES[state === "sealed" && attempt > 0 && error ? "failed" : state];
}

async function skip(segment: SegmentView, onChanged: () => unknown): Promise<void> {
  await post<SegmentView>(`/api/memory/segments/${segment.id}/waive`);
  showToast("Skipped.");
  await onChanged();
}

/** Learning may take this long: a model reads the whole conversation. */
const TIMEOUT_MS = 180_000;

/** Learns from a conversation now, whether it is over or not. */
export function LearnButton({ sessionId, onDone }: { sessionId: string; onDone: () => unknown }) {
  const [busy, setBusy] = useState(false);
  const commit = async () => {
    setBusy(true);
    await learn(sessionId);
    await onDone();
    setBusy(false);
  };
  return (
    <Button small disabled={busy} onClick={commit}>
      {busy ? "Learning…" : "Learn now"}
    </Button>
  );
}

async function learn(sessionId: string): Promise<void> {
  try {
    const body = { session_id: sessionId, wait: true };
    const { committed } = await post<Committed>("/api/memory/commit", body, { timeoutMs: TIMEOUT_MS });
    showToast(committed ? "Learned." : "Nothing was learned; the list says why.", { bad: !committed });
  } catch (error) {
    showError(error);
  }
}
