// @vitest-environment happy-dom
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Refused, Unanswered } from "../../src/api.ts";
import { drain, type Transport } from "../../src/outbox/delivery.ts";
import type { Outgoing } from "../../src/outbox/message.ts";
import { MemoryStorage } from "../../src/outbox/storage.ts";
import type { Receipt } from "../../src/wire.ts";

type Fate = (typeof FATES)[number];

const FATES = ["answered", "lost before", "lost after", "not ready", "too often", "signed out", "broken"] as const;
const REFUSED = "what is refused";

function outgoing(number: number, more: Partial<Outgoing> = {}): Outgoing {
  const fresh = { state: "waiting", turnId: null, problem: "", reply: null, busy: null } as const;
  const message = { text: `text ${number}`, images: [], sessionId: "s", opening: null };
  return { key: `k${number}`, at: number, ...message, ...fresh, ...more };
}

/** A gateway that accepts each key once, and loses answers as its script says. */
class Gateway implements Transport {
  readonly taken = new Map<string, string>();
  readonly opened = new Map<string, string>();
  readonly tried: string[] = [];
  isUp = true;

  constructor(readonly script: Fate[] = []) {}

  async isReady(): Promise<boolean> {
    return this.isUp;
  }

  async open({ key }: { key: string }): Promise<string> {
    return this.#answer(() => {
      if (!this.opened.has(key)) this.opened.set(key, `s${this.opened.size + 1}`);
      return this.opened.get(key)!;
    });
  }

  async send(sessionId: string, { key, text }: Outgoing): Promise<Receipt> {
    this.tried.push(key);
    if (text === REFUSED) throw new Refused(413, { code: "too_large", message: "too large" });
    const turn_id = this.#answer(() => {
      if (!this.taken.has(key)) this.taken.set(key, `t-${key}`);
      return this.taken.get(key)!;
    });
    return { turn_id, session_id: sessionId, state: "queued", accepted_at: 0 };
  }

  #answer<T>(take: () => T): T {
    const fate = this.script.shift() ?? "answered";
    if (fate === "lost before") throw new Unanswered();
    if (fate === "not ready") throw new Refused(503, { code: "draining" }, 2_000);
    if (fate === "too often") throw new Refused(429, { code: "queue_full" });
    if (fate === "signed out") throw new Refused(401);
    const answer = take();
    if (fate === "lost after") throw new Unanswered();
    if (fate === "broken") throw new Refused(500, { code: "internal" });
    return answer;
  }
}

async function kept(items: readonly Outgoing[]): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  for (const each of items) await storage.change(each.key, () => each);
  return storage;
}

const once = (storage: MemoryStorage, gateway: Transport, lane = "s") => drain(lane, storage, gateway, () => {});

/** Retry as a page does, and return the number of tries. */
async function untilDone(storage: MemoryStorage, gateway: Transport, lane = "s"): Promise<number> {
  for (let tries = 1; ; tries += 1) if ((await once(storage, gateway, lane)) === "done") return tries;
}

const states = async (storage: MemoryStorage) => (await storage.all()).map(({ key, state }) => [key, state]);

describe("messages of a session", () => {
  it("arrive once each and in order, whatever is lost on the way", async () => {
    const script = fc.array(fc.constantFrom(...FATES), { maxLength: 20 });
    const bad = fc.uniqueArray(fc.nat(5), { maxLength: 2 });
    await fc.assert(
      fc.asyncProperty(script, bad, fc.integer({ min: 1, max: 6 }), fc.nat(2), async (fates, refused, count, tabs) => {
        const items = Array.from({ length: count }, (_, at) =>
          outgoing(at, refused.includes(at) ? { text: REFUSED } : {}),
        );
        const [gateway, storage] = [new Gateway([...fates]), await kept(items)];
        // Without locks, several tabs send at once.
        await Promise.all(Array.from({ length: tabs + 1 }, () => untilDone(storage, gateway)));
        const wanted = items.filter((each) => each.text !== REFUSED).map((each) => each.key);
        expect([...gateway.taken.keys()]).toEqual(wanted);
        expect(await states(storage)).toEqual(
          items.map((each) => [each.key, each.text === REFUSED ? "refused" : "accepted"]),
        );
      }),
    );
  });

  it("are unconfirmed if no answer came, and wait if they were never sent", async () => {
    const storage = await kept([outgoing(1)]);
    const gateway = new Gateway(["lost after", "not ready"]);
    gateway.isUp = false;
    expect(await once(storage, gateway)).toEqual({ retryAfterMs: null });
    expect([await states(storage), gateway.tried]).toEqual([[["k1", "waiting"]], []]);
    gateway.isUp = true;
    expect(await once(storage, gateway)).toEqual({ retryAfterMs: null });
    expect(await states(storage)).toEqual([["k1", "unconfirmed"]]);
    expect(await once(storage, gateway)).toEqual({ retryAfterMs: 2_000 });
    // It may have been accepted the first time, so it cannot be discarded now.
    expect(await states(storage)).toEqual([["k1", "unconfirmed"]]);
    expect(await once(storage, gateway)).toBe("done");
    expect(await storage.all()).toMatchObject([{ state: "accepted", turnId: "t-k1" }]);
  });

  it("say why they were refused, and do not block the next one", async () => {
    const storage = await kept([outgoing(1, { text: REFUSED }), outgoing(2)]);
    expect(await once(storage, new Gateway())).toBe("done");
    expect(await storage.all()).toMatchObject([{ state: "refused", problem: "Too large." }, { state: "accepted" }]);
  });

  it("are not sent once they are discarded", async () => {
    const storage = await kept([outgoing(1), outgoing(2)]);
    const gateway = new Gateway();
    // It is discarded after it was found and before it is sent.
    gateway.isReady = async () => {
      await storage.change("k1", () => null);
      return true;
    };
    expect(await once(storage, gateway)).toBe("done");
    expect(gateway.tried).toEqual(["k2"]);
  });

  it("open their session once, however many wait and whatever is lost", async () => {
    const opening = { key: "web-1", previous_session_id: null };
    const storage = await kept([1, 2].map((each) => outgoing(each, { sessionId: null, opening })));
    const gateway = new Gateway(["lost after", "not ready"]);
    await untilDone(storage, gateway, "web-1");
    expect(await storage.all()).toMatchObject([{ sessionId: "s1" }, { sessionId: "s1" }]);
    await untilDone(storage, gateway, "s1");
    expect([gateway.opened.size, [...gateway.taken.keys()]]).toEqual([1, ["k1", "k2"]]);
  });

  it("record the following session and the reply to a command", async () => {
    const storage = await kept([outgoing(1, { text: "/new" })]);
    const gateway = new Gateway();
    const receipt: Receipt = { turn_id: "", session_id: "next", state: "completed", accepted_at: 0, reply: "Begun." };
    gateway.send = async () => receipt;
    await once(storage, gateway);
    expect(await storage.all()).toMatchObject([
      { state: "accepted", sessionId: "next", turnId: null, reply: "Begun." },
    ]);
  });
});
