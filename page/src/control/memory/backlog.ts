/** What memory has not learned yet, in the words of the command line. */

import { count } from "../../format.ts";
import type { Debt } from "../../wire.ts";

interface Kind {
  name: keyof Debt;
  label: string;
  meaning: string;
}

/** What is waiting, and what waits for something else first; together they have not been learned. */
export const KINDS: readonly Kind[] = [
  { name: "owed", label: "owed", meaning: "waiting for their provider" },
  { name: "parked", label: "parked", meaning: "their provider cannot be opened here" },
  { name: "open", label: "gathering", meaning: "their conversations go on" },
  { name: "committing", label: "being committed", meaning: "being handed over now" },
];

/** Return the counts of each kind that is not zero, such as "2 on hold, 5 in progress". */
export function backlogText(debt: Debt, ...without: readonly (keyof Debt)[]): string {
  const shown = KINDS.filter(({ name }) => debt[name] && !without.includes(name));
  return shown.map(({ name, label }) => `${count(debt[name] ?? 0)} ${label}`).join(", ");
}
