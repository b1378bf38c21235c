// @vitest-environment happy-dom
import fc from "fast-check";
import { expect, test } from "vitest";
import { accountOf } from "../../src/control/status/accounting.tsx";
import type { Status } from "../../src/wire.ts";

const amount = fc.nat({ max: 1_000 });
const turns = fc.record({
  completed: amount,
  failed: amount,
  cancelled: amount,
  interrupted: amount,
  queued: amount,
  running: amount,
  waiting: amount,
});

function statusOf(counts: Partial<Status>): Status {
  return {
    pid: 1,
    node: "n",
    version: "0",
    home: "",
    url: "",
    store: "",
    state: "ready",
    ready: true,
    started_at: 0,
    uptime_s: 0,
    running: 0,
    ...counts,
  };
}

function honest(turns: Record<string, number>): Partial<Status> {
  const { completed = 0, failed = 0, cancelled = 0, interrupted = 0, queued = 0, running = 0, waiting = 0 } = turns;
  const settled = completed + failed + cancelled + interrupted;
  const in_flight = queued + running + waiting;
  return { turns, settled, in_flight, accepted: settled + in_flight };
}

test("a consistent account is right and counts every turn once", () => {
  fc.assert(
    fc.property(turns, (turns) => {
      const account = accountOf(statusOf(honest(turns)));
      expect(account.right).toBe(true);
      expect(account.states.reduce((total, { count }) => total + count, 0)).toBe(account.accepted);
    }),
  );
});

test("any count that is off by one is noticed", () => {
  fc.assert(
    fc.property(
      turns,
      fc.constantFrom("accepted", "settled", "in_flight"),
      fc.constantFrom(-1, 1),
      (turns, what, by) => {
        const counts = honest(turns);
        expect(accountOf(statusOf({ ...counts, [what]: counts[what]! + by })).right).toBe(false);
      },
    ),
  );
});

test("without counts the account is empty", () => {
  expect(accountOf(statusOf({}))).toMatchObject({ accepted: 0, states: [], right: true });
});
