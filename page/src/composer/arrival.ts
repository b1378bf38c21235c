/** Going to a session as soon as it is open, for whoever waits for it where it was begun. */

import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { outgoing } from "../outbox/outbox.ts";
import { tabPocket } from "../pocket.ts";
import { go, to } from "../router.ts";
import { moveInto } from "./writing.ts";

/** Kept for this tab alone, across a reload: what is begun in one is nothing to another. */
const AWAITED = "holdfast.awaited";

export function awaitOpening(key: string): void {
  tabPocket.set(AWAITED, key);
  arrive();
}

/** Go where what was begun here has been opened.  Whoever looks elsewhere meanwhile is left there. */
export function useArrival(begins: boolean): void {
  useSignalEffect(() => {
    if (outgoing.value.length && begins) arrive();
  });
  useEffect(() => (begins ? () => tabPocket.remove(AWAITED) : undefined), [begins]);
}

function arrive(): void {
  const awaited = tabPocket.get(AWAITED);
  const opened = outgoing.peek().find((each) => each.opening?.key === awaited && each.sessionId !== null);
  if (!opened?.sessionId) return;
  moveInto(opened.sessionId);
  go(to.session(opened.sessionId));
}
