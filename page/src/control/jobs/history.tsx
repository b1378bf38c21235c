import { Button } from "../../ui/button.tsx";
import { Badge, Empty, Time, type Tone } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import type { Fired, Outcome } from "../../wire.ts";
import { type Column, Table } from "../parts/table.tsx";
import { openTurn } from "./actions.ts";

const MEANINGS: Record<Outcome, { word: string; tone: Tone; said: string }> = {
  due: { word: "At work", tone: "busy", said: "" },
  ran: { word: "Ran", tone: "good", said: "" },
  failed: { word: "Failed", tone: "bad", said: "Its conversation says why." },
  missed: { word: "Missed", tone: "note", said: "The gateway was not running then, and it was too late afterwards." },
};

/** What became of the times at which a job was due, the newest first. */
export function History({ slots }: { slots: readonly Fired[] }) {
  if (slots.length === 0) {
    return (
      <div class="panel">
        <Empty icon="clock" title="It has not been due yet">
          Run it now to see what it does.
        </Empty>
      </div>
    );
  }
  return (
    <Table label="Times at which it was due" columns={COLUMNS} rows={slots} keyOf={(each) => String(each.instant)} />
  );
}

const COLUMNS: readonly Column<Fired>[] = [
  { title: "When", cell: (slot) => <Time at={slot.instant} as="relative" /> },
  { title: "Outcome", cell: (slot) => <Badge tone={MEANINGS[slot.outcome].tone}>{MEANINGS[slot.outcome].word}</Badge> },
  { title: "Note", wide: true, cell: (slot) => <span class="faint">{MEANINGS[slot.outcome].said}</span> },
  { title: "", cell: (slot) => slot.turn_id && <OpenTurn turnId={slot.turn_id} /> },
];

function OpenTurn({ turnId }: { turnId: string }) {
  return (
    <Button small icon="chat" onClick={() => attempt(() => openTurn(turnId))}>
      Open
    </Button>
  );
}
