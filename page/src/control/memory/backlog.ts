/** What memory has not learned yet, in the words of the command line. */

import { count } from "../../format.ts";
import type { Debt } from "../../wire.ts";

interface Kind {
  name: keyof Debt;
  label: string;
  meaning: string;
}

/** What is owed, and what waits for something else; together they are unpaid. */
export const KINDS: readonly Kind[] = [
  { name: "owed", label: "owed", meaning: "waiting for their provider" },
  { name: "parked", label: "parked", meaning: "their provider cannot be opened here" },
  { name: "open", label: "gathering", meaning: "their conversations go on" },
  { name: "committing", label: "being committed", meaning: "being handed over now" },
];

/** Return how much there is of each kind, those of which there is nothing left out: "2 parked, 5 gathering". */
export function backlogText(debt: Debt, ...without: readonly (keyof Debt)[]): string {
  const shown = KINDS.filter(({ name }) => debt[name] && !without.includes(name));
  return shown.map(({ name, label }) => `${count(debt[name] ?? 0)} ${label}`).join(", ");
}
