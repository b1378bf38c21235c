/** What memory has not learned yet, in words. */

import { count } from "../../format.ts";
import type { Debt } from "../../wire.ts";

interface Kind {
  name: keyof Debt;
  label: string;
  meaning: string;
}

/** What is waiting, and what waits for something else first; together they have not been learned. */
export const KINDS: readonly Kind[] = [
  { name: "owed", label: "waiting", meaning: "to be learned next" },
  { name: "parked", label: "on hold", meaning: "their provider is not available here" },
  { name: "open", label: "in progress", meaning: "their conversations are still open" },
  { name: "committing", label: "being learned", meaning: "being processed now" },
];

/** Return the counts of each kind that is not zero, such as "2 on hold, 5 in progress". */
export function backlogText(debt: Debt, ...without: readonly (keyof Debt)[]): string {
  const visible = KINDS.filter(({ name }) => debt[name] && !without.includes(name));
  return visible.map(({ name, label }) => `${count(debt[name] ?? 0)} ${label}`).join(", ");
}
