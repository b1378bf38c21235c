/** Keys that nobody else has. */

const BYTES = 16;

/** Return a new one.  Only pages that came by TLS or from this machine are given random ids ready-made. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return [...bytes].map((each) => each.toString(16).padStart(2, "0")).join("");
}
