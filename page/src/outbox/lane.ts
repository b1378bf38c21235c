/** Sending the messages of one session: one after the other, in their order, each until it is settled. */

import type { Receipt } from "../wire.ts";
import { accepted, isDue, laneOf, type Opening, type Outgoing } from "./message.ts";
import type { Storage } from "./storage.ts";
import { type Verdict, verdictOn } from "./verdict.ts";

/** How the gateway is reached. */
export interface Transport {
  /** Whether a message can be sent now: what was never sent need not be unconfirmed. */
  isReady(item: Outgoing): Promise<boolean>;
  /** Open the session that a message needs, and return its id. */
  open(opening: Opening): Promise<string>;
  send(sessionId: string, item: Outgoing): Promise<Receipt>;
}

/** How a try ended: all was sent, or is to be tried again. */
export type Outcome = "done" | { retryAfterMs: number | null };

/** Send what is due in a lane, until there is nothing left or the gateway has to be waited for. */
export async function drain(
  lane: string,
  storage: Storage,
  transport: Transport,
  onChange: () => void,
): Promise<Outcome> {
  for (;;) {
    const item = (await storage.all()).find((each) => laneOf(each) === lane && isDue(each));
    if (!item) return "done";
    if (!(await transport.isReady(item))) return { retryAfterMs: null };
    const outcome = await new Delivery(item, storage, transport, onChange).run();
    if (outcome !== "done") return outcome;
  }
}

/** One try to send one message. */
class Delivery {
  constructor(
    readonly item: Outgoing,
    readonly storage: Storage,
    readonly transport: Transport,
    readonly onChange: () => void,
  ) {}

  async run(): Promise<Outcome> {
    const { item } = this;
    const isDoubtful = item.state === "unconfirmed" || item.state === "sending";
    let sent = isDoubtful;
    try {
      if (item.sessionId === null) return await this.#open(item.opening!);
      if (!(await this.#begin())) return "done";
      sent = true;
      const receipt = await this.transport.send(item.sessionId, item);
      await this.#change((kept) => accepted(kept, receipt));
      return "done";
    } catch (error) {
      return await this.#judge(verdictOn(error, isDoubtful, sent));
    }
  }

  /** Say that it is being sent; false when it was taken back, or another tab has sent it meanwhile. */
  async #begin(): Promise<boolean> {
    const begun = await this.#change((kept) => (isDue(kept) ? { ...kept, state: "sending", problem: "" } : kept));
    return begun?.state === "sending";
  }

  /** Open the session, for all messages that wait for it. */
  async #open(opening: Opening): Promise<Outcome> {
    const sessionId = await this.transport.open(opening);
    for (const each of await this.storage.all()) {
      if (each.sessionId === null && each.opening?.key === opening.key) {
        await this.storage.change(each.key, (kept) => kept && { ...kept, sessionId });
      }
    }
    this.onChange();
    return "done";
  }

  async #judge({ state, problem, turnId, retryAfterMs }: Verdict): Promise<Outcome> {
    // Where there are no locks another tab may have had its receipt meanwhile, and that stands.
    const judged = { state, problem, turnId, ...(state === "accepted" ? { acceptedAt: Date.now() } : {}) };
    await this.#change((kept) => (kept.state === "accepted" ? kept : { ...kept, ...judged }));
    return state === "waiting" || state === "unconfirmed" ? { retryAfterMs } : "done";
  }

  /** Change the message; null when its person has discarded it meanwhile. */
  async #change(change: (kept: Outgoing) => Outgoing): Promise<Outgoing | null> {
    const changed = await this.storage.change(this.item.key, (kept) => kept && change(kept));
    this.onChange();
    return changed;
  }
}
