/** What a background command writes, read on from where the last reading ended. */

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { get } from "../../api.ts";
import type { Output } from "../../wire.ts";

/** More than this is not kept in the page; the gateway has it. */
const KEPT_MAX = 400_000;
/** So many pieces are read at once; a command that writes faster is read on at the next look. */
const PIECES_MAX = 16;

export interface Log {
  text: string;
  /** Something stood before the text that is not shown here. */
  cut: boolean;
  end: number;
  read: boolean;
  error: unknown;
}

export const emptyLog: Log = { text: "", cut: false, end: 0, read: false, error: undefined };

/** Return a log with one more piece. */
export function append(log: Log, output: Output): Log {
  const whole = log.text + output.text;
  const text = whole.length > KEPT_MAX ? fromLine(whole.slice(-KEPT_MAX)) : whole;
  const cut = log.cut || output.begin > log.end || text.length < whole.length;
  return { text, cut, end: output.end, read: true, error: undefined };
}

function fromLine(text: string): string {
  return text.slice(text.indexOf("\n") + 1);
}

/** Return the log of a command, and what reads on. */
export function logOf(processId: string): { log: ReadonlySignal<Log>; readOn: () => Promise<void> } {
  const log = signal(emptyLog);
  let reading = false;
  const readOn = async () => {
    if (reading) return;
    reading = true;
    try {
      await readPieces(processId, log);
    } catch (error) {
      log.value = { ...log.peek(), error };
    } finally {
      reading = false;
    }
  };
  return { log, readOn };
}

async function readPieces(processId: string, log: Signal<Log>): Promise<void> {
  for (let piece = 0; piece < PIECES_MAX; piece++) {
    const before = log.peek();
    const output = await get<Output>(
      `/api/processes/${encodeURIComponent(processId)}/log?colours=true&after=${before.end}`,
    );
    if (output.end === before.end && before.read) return;
    log.value = append(before, output);
    if (output.end === before.end) return;
  }
}
