/** Signing out: whoever comes to this browser next finds nothing of what was read or written in it. */

import { forgetWriting } from "../composer/writing.ts";
import { signOut } from "../me.ts";
import { discard, outgoing } from "../outbox/outbox.ts";

/** Sign out, and leave nothing behind.  Throws while there is something that would be lost. */
export async function leave(): Promise<void> {
  if (outgoing.value.some((each) => each.state !== "accepted")) {
    throw new Error("A message has not been sent yet. Let it arrive, or discard it; then sign out.");
  }
  await signOut();
  await Promise.all(outgoing.value.map((each) => discard(each.key)));
  forgetWriting();
  // What the page has in its memory goes with it.
  location.reload();
}
