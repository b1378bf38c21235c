/** The status of a turn: everything about it except its items. */

import { field, firstSeq, type JournalEntry, numberField, textField } from "./entries.ts";
import type { TokenUsage, Turn } from "./view.ts";

export interface TurnStatus extends Omit<Turn, "items"> {
  /** The turn that its message joined. */
  joined: string | null;
  /** It was interrupted, and has not started again. */
  interrupted: boolean;
}

export const noUsage: TokenUsage = { model: "", input: 0, output: 0, cached: 0, costMicros: 0 };

export const newTurnStatus = (id: string): TurnStatus => ({
  id,
  order: 0,
  acceptedAt: 0,
  startedAt: null,
  endedAt: null,
  state: "queued",
  attempt: 0,
  resumed: false,
  hidden: false,
  error: "",
  cause: "",
  wait: null,
  used: noUsage,
  joined: null,
  interrupted: false,
});

/** Return the status after an entry; the same object if nothing changes, which is the most common case. */
export function statusAfter(status: TurnStatus, entry: JournalEntry): TurnStatus {
  switch (entry.kind) {
    case "turn.accepted":
      return { ...status, order: firstSeq(entry), acceptedAt: entry.at };
    case "turn.started":
      return startedStatus(status, entry);
    case "turn.deferred":
      return deferredStatus(status, entry);
    case "approval.asked":
      return { ...status, state: "waiting" };
    case "approval.answered":
      return { ...status, state: "queued" };
    case "usage":
      return { ...status, used: addUsage(status.used, usageOf(entry)) };
    case "turn.completed":
      return completedStatus(status, entry);
    case "turn.failed":
      return { ...status, state: "failed", error: textField(entry, "error"), endedAt: entry.at };
    case "turn.cancelled":
      return { ...status, state: "cancelled", cause: textField(entry, "cause"), endedAt: entry.at };
    case "turn.interrupted":
      return interruptedStatus(status, entry);
    case "turn.undone":
      return { ...status, hidden: true };
    default:
      return status;
  }
}

/** An entry after the end of its attempt changes only the usage. */
export const statusAfterLate = (status: TurnStatus, entry: JournalEntry) =>
  entry.kind === "usage" ? statusAfter(status, entry) : status;

function startedStatus(status: TurnStatus, entry: JournalEntry): TurnStatus {
  const startedAt = status.startedAt ?? entry.at;
  const resumed = status.resumed || status.interrupted;
  const again = { cut: false, cause: "", error: "", wait: null, endedAt: null } as const;
  return { ...status, ...again, state: "running", attempt: entry.attempt, startedAt, resumed };
}

function deferredStatus(status: TurnStatus, entry: JournalEntry): TurnStatus {
  return {
    ...status,
    state: "queued",
    wait: { error: textField(entry, "error"), retryAt: numberField(entry, "retry_at") },
  };
}

function completedStatus(status: TurnStatus, entry: JournalEntry): TurnStatus {
  const joined = textField(entry, "joined") || null;
  const hidden = status.hidden || field(entry, "joined") !== undefined;
  return { ...status, state: "completed", endedAt: entry.at, joined, hidden };
}

function interruptedStatus(status: TurnStatus, entry: JournalEntry): TurnStatus {
  const cause = textField(entry, "cause");
  if (field(entry, "continues") === true) return { ...status, state: "queued", cause, interrupted: true };
  return { ...status, state: "interrupted", cause, interrupted: true, endedAt: entry.at };
}

export function usageOf(entry: JournalEntry): TokenUsage {
  return {
    model: textField(entry, "model"),
    input: numberField(entry, "input_tokens"),
    output: numberField(entry, "output_tokens"),
    cached: numberField(entry, "cached_tokens"),
    costMicros: numberField(entry, "cost_micros"),
  };
}

export function addUsage(one: TokenUsage, other: TokenUsage): TokenUsage {
  return {
    model: other.model || one.model,
    input: one.input + other.input,
    output: one.output + other.output,
    cached: one.cached + other.cached,
    costMicros: one.costMicros + other.costMicros,
  };
}
