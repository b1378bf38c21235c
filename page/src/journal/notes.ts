/** What Holdfast says in its own name about a turn, in the words of src/holdfast/core/notes.py. */

/** How much of a lost attempt has been found. */
export type Recovery = "nothing" | "pending" | "output";

/** Nothing found is nothing said: what is not there now may still arrive. */
const RECOVERY: Readonly<Record<Recovery, string>> = {
  nothing: "",
  pending: " Recovery of its output is pending.",
  output: " Its output was recovered from the run journal.",
};
const INTERRUPTED = new Map([
  ["restart_timeout", "Interrupted by a gateway restart."],
  ["shutdown_timeout", "Interrupted by a gateway shutdown."],
  ["disk_full", "Interrupted: the disk was full."],
]);
const CANCELLATION = new Map([
  ["superseded", "Cancelled: a newer message took its place."],
  ["session_ended", "Cancelled: the session was ended."],
  ["session_suspended", "Cancelled: the session was suspended."],
]);

export function interrupted(cause: string, recovery: Recovery, error: string): string {
  const reason = error ? ` It was ${error}` : "";
  const planned = INTERRUPTED.get(cause);
  return `${planned ?? `Interrupted: the gateway stopped without warning.${RECOVERY[recovery]}`}${reason}`;
}

export const cancelled = (cause: string) => CANCELLATION.get(cause) ?? "Cancelled.";

export const failed = (error: string) => (error ? `Failed: ${error}` : "Failed.");
