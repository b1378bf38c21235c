/** What the states of a background command are called. */

import type { Tone } from "../../ui/parts.tsx";
import type { ProcessView } from "../../wire.ts";

/** Return how a command stands, in a word or two. */
export function standing({ state, exit_code: code }: ProcessView): { word: string; tone: Tone } {
  switch (state) {
    case "running":
      return { word: "Running", tone: "busy" };
    case "lost":
      return { word: "Lost", tone: "bad" };
    case "exited":
      return code === 0 ? { word: "Done", tone: "good" } : { word: `Exit ${code ?? "unknown"}`, tone: "bad" };
  }
}

/** Return for how long it has run. */
export const ranMs = ({ started_at: start, ended_at: end }: ProcessView, now = Date.now()) =>
  Math.max(0, (end ?? now) - start);
