/** The status of a turn: everything about it except its items. */

import { countOf, given, type Journalled, sinceOf, textOf } from "./entries.ts";
import type { Turn, Used } from "./view.ts";

export interface Standing extends Omit<Turn, "items"> {
  /** The turn that its message became a part of. */
  joined: string | null;
  /** It was interrupted, and has not been started again. */
  cut: boolean;
}

export const nothingUsed: Used = { model: "", input: 0, output: 0, cached: 0, costMicros: 0 };

export const newcomer = (id: string): Standing => ({
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
  used: nothingUsed,
  joined: null,
  cut: false,
});

/** Return how a turn stands after an entry; the same object if that changes nothing, as with most. */
export function after(standing: Standing, entry: Journalled): Standing {
  switch (entry.kind) {
    case "turn.accepted":
      return { ...standing, order: sinceOf(entry), acceptedAt: entry.at };
    case "turn.started":
      return started(standing, entry);
    case "turn.deferred":
      return deferred(standing, entry);
    case "approval.asked":
      return { ...standing, state: "waiting" };
    case "approval.answered":
      return { ...standing, state: "queued" };
    case "usage":
      return { ...standing, used: sum(standing.used, usedIn(entry)) };
    case "turn.completed":
      return completed(standing, entry);
    case "turn.failed":
      return { ...standing, state: "failed", error: textOf(entry, "error"), endedAt: entry.at };
    case "turn.cancelled":
      return { ...standing, state: "cancelled", cause: textOf(entry, "cause"), endedAt: entry.at };
    case "turn.interrupted":
      return cutOff(standing, entry);
    case "turn.undone":
      return { ...standing, hidden: true };
    default:
      return standing;
  }
}

/** What arrives after the end of its attempt changes nothing but what was used. */
export const afterLate = (standing: Standing, entry: Journalled) =>
  entry.kind === "usage" ? after(standing, entry) : standing;

function started(standing: Standing, entry: Journalled): Standing {
  const startedAt = standing.startedAt ?? entry.at;
  const resumed = standing.resumed || standing.cut;
  const again = { cut: false, cause: "", error: "", wait: null, endedAt: null } as const;
  return { ...standing, ...again, state: "running", attempt: entry.attempt, startedAt, resumed };
}

function deferred(standing: Standing, entry: Journalled): Standing {
  return { ...standing, state: "queued", wait: { error: textOf(entry, "error"), retryAt: countOf(entry, "retry_at") } };
}

function completed(standing: Standing, entry: Journalled): Standing {
  const joined = textOf(entry, "joined") || null;
  const hidden = standing.hidden || given(entry, "joined") !== undefined;
  return { ...standing, state: "completed", endedAt: entry.at, joined, hidden };
}

function cutOff(standing: Standing, entry: Journalled): Standing {
  const cause = textOf(entry, "cause");
  if (given(entry, "continues") === true) return { ...standing, state: "queued", cause, cut: true };
  return { ...standing, state: "interrupted", cause, cut: true, endedAt: entry.at };
}

export function usedIn(entry: Journalled): Used {
  return {
    model: textOf(entry, "model"),
    input: countOf(entry, "input_tokens"),
    output: countOf(entry, "output_tokens"),
    cached: countOf(entry, "cached_tokens"),
    costMicros: countOf(entry, "cost_micros"),
  };
}

export function sum(one: Used, other: Used): Used {
  return {
    model: other.model || one.model,
    input: one.input + other.input,
    output: one.output + other.output,
    cached: one.cached + other.cached,
    costMicros: one.costMicros + other.costMicros,
  };
}
