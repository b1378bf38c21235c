/** How messages reach the gateway: over HTTP, each with the key that makes it one. */

import { get, post, Refused } from "../api.ts";
import { link } from "../connection.ts";
import { me } from "../me.ts";
import type { Health, Receipt, SessionView } from "../wire.ts";
import type { Transport } from "./lane.ts";
import { isOurs } from "./message.ts";

const PROBE_MS = 5_000;
/** Pictures take their time on a slow line. */
const UPLOAD_MS = 180_000;

export const transport: Transport = {
  async isReady(item) {
    // Nothing is sent in the name of somebody who did not write it.
    if (!me.peek() || !isOurs(item, me.peek())) return false;
    if (link.peek() === "live") return true;
    try {
      await get<Health>("/health", { patienceMs: PROBE_MS });
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
    const patience = images.length ? { patienceMs: UPLOAD_MS } : {};
    const asking = { headers: { "Idempotency-Key": key }, ...patience };
    return post<Receipt>(
      `/api/sessions/${encodeURIComponent(sessionId)}/messages`,
      { text, busy, images: pictures },
      asking,
    );
  },
};
