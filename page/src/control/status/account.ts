/** The account of all messages: what was accepted must be what is settled and what is in flight. */

import type { Status, TurnState } from "../../wire.ts";

const IN_FLIGHT: readonly TurnState[] = ["queued", "running", "waiting"];
const SETTLED: readonly TurnState[] = ["completed", "failed", "cancelled", "interrupted"];

export interface Account {
  accepted: number;
  settled: number;
  inFlight: number;
  /** How many turns are in each state; those without any are left out. */
  states: readonly { state: TurnState; count: number }[];
  /** Whether every way of counting comes to the same. */
  right: boolean;
}

/** Return the account, counted here once more from the states of the turns. */
export function accountOf(status: Status): Account {
  const { accepted = 0, settled = 0, in_flight: inFlight = 0, turns = {} } = status;
  const sum = (states: readonly TurnState[]) => states.reduce((total, state) => total + (turns[state] ?? 0), 0);
  return {
    accepted,
    settled,
    inFlight,
    states: [...SETTLED, ...IN_FLIGHT]
      .map((state) => ({ state, count: turns[state] ?? 0 }))
      .filter(({ count }) => count),
    right: accepted === settled + inFlight && sum(SETTLED) === settled && sum(IN_FLIGHT) === inFlight,
  };
}
