/** Delivers messages over HTTP: one session at a time in order, each message until it is accepted or refused. */

import { errorText, get, post, Refused } from "../api.ts";
import { connection } from "../connection.ts";
import { me } from "../sign_in/identity.ts";
import type { Health, Receipt, SessionView } from "../wire.ts";
import { accepted, isDue, isOwnedBy, type Opening, type Outgoing, queueOf } from "./message.ts";
import type { MessageStorage } from "./storage.ts";

/** How the gateway is reached. */
export interface Transport {
  /** Whether a message can be sent now.  A message that was never sent cannot become unconfirmed. */
  isReady(item: Outgoing): Promise<boolean>;
  /** Open the session that a message needs, and return its id. */
  open(opening: Opening): Promise<string>;
  send(sessionId: string, item: Outgoing): Promise<Receipt>;
}

/** How a run ended: everything was sent, or it has to be retried. */
export type Outcome = "done" | { retryAfterMs: number | null };

/** Send the messages of a queue until it is empty or the gateway has to be waited for. */
export async function drain(
  queue: string,
  storage: MessageStorage,
  transport: Transport,
  onChange: () => void,
): Promise<Outcome> {
  for (;;) {
    const item = (await storage.all()).find((each) => queueOf(each) === queue && isDue(each));
    if (!item) return "done";
    if (!(await transport.isReady(item))) return { retryAfterMs: null };
    const outcome = await new Delivery(item, storage, transport, onChange).run();
    if (outcome !== "done") return outcome;
  }
}

/** One attempt to send one message. */
class Delivery {
  constructor(
    readonly item: Outgoing,
    readonly storage: MessageStorage,
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
      await this.#change((stored) => accepted(stored, receipt));
      return "done";
    } catch (error) {
      return await this.#judge(verdictOn(error, isDoubtful, sent));
    }
  }

  /** Mark it as being sent; false if it was discarded, or another tab has sent it. */
  async #begin(): Promise<boolean> {
    const started = await this.#change((stored) =>
      isDue(stored) ? { ...stored, state: "sending", problem: "" } : stored,
    );
    return started?.state === "sending";
  }

  /** Open the session, for all messages that wait for it. */
  async #open(opening: Opening): Promise<Outcome> {
    const sessionId = await this.transport.open(opening);
    for (const each of await this.storage.all()) {
      if (each.sessionId === null && each.opening?.key === opening.key) {
        await this.storage.change(each.key, (stored) => stored && { ...stored, sessionId });
      }
    }
    this.onChange();
    return "done";
  }

  async #judge({ state, problem, turnId, retryAfterMs }: FailureVerdict): Promise<Outcome> {
    // In a browser without locks another tab may have its receipt already, which stands.
    const result = { state, problem, turnId, ...(state === "accepted" ? { acceptedAt: Date.now() } : {}) };
    await this.#change((stored) => (stored.state === "accepted" ? stored : { ...stored, ...result }));
    return state === "waiting" || state === "unconfirmed" ? { retryAfterMs } : "done";
  }

  /** Change the message; null if the person has discarded it. */
  async #change(change: (stored: Outgoing) => Outgoing): Promise<Outgoing | null> {
    const changed = await this.storage.change(this.item.key, (stored) => stored && change(stored));
    this.onChange();
    return changed;
  }
}

/** The gateway took nothing, and may accept a retry: not signed in, timeout, too early, rate limited, unavailable. */
const TRANSIENT: ReadonlySet<number> = new Set([401, 408, 425, 429, 503]);
const CONFLICT = 409;

type FailureVerdict = Pick<Outgoing, "state" | "problem"> & {
  /** When to retry; null for the usual backoff. */
  retryAfterMs: number | null;
  /** The turn that the message already is, if the gateway says so. */
  turnId: string | null;
};

/** Return what an error means for a message: the gateway may have received it with this attempt, or before. */
function verdictOn(error: unknown, before: boolean, sent: boolean): FailureVerdict {
  const again = { problem: "", retryAfterMs: null, turnId: null };
  const unknown: FailureVerdict = { ...again, state: sent ? "unconfirmed" : "waiting" };
  // The result of this attempt says nothing about earlier ones.
  const passed: FailureVerdict = { ...again, state: before ? "unconfirmed" : "waiting" };
  if (!(error instanceof Refused)) return unknown;
  if (TRANSIENT.has(error.status)) return { ...passed, retryAfterMs: error.retryAfterMs };
  if (error.status >= 500) return unknown;
  if (error.status === CONFLICT && error.problem.turn_id) {
    return { ...again, state: "accepted", turnId: error.problem.turn_id };
  }
  // Another client changed the session at that very moment.
  if (error.status === CONFLICT && error.code === "stale") return passed;
  return { ...again, state: "refused", problem: errorText(error) };
}

const PROBE_MS = 5_000;
/** Pictures take long on a slow connection. */
const UPLOAD_MS = 180_000;

export const transport: Transport = {
  async isReady(item) {
    // A message is only sent for the person who wrote it.
    if (!me.peek() || !isOwnedBy(item, me.peek())) return false;
    if (connection.peek() === "live") return true;
    try {
      await get<Health>("/health", { timeoutMs: PROBE_MS });
      return true;
    } catch (error) {
      return error instanceof Refused;
    }
  },

  async open(opening) {
    return (await post<SessionView>("/api/sessions", opening)).id;
  },

  send(sessionId, { key, text, busy, images }) {
    const pictures = images.map(({ media_type, data }) => ({ media_type, data }));
    const timeout = images.length ? { timeoutMs: UPLOAD_MS } : {};
    const asking = { headers: { "Idempotency-Key": key }, ...timeout };
    return post<Receipt>(
      `/api/sessions/${encodeURIComponent(sessionId)}/messages`,
      { text, busy, images: pictures },
      asking,
    );
  },
};
