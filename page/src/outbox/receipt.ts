/** What is told about a message that is on its way. */

import type { IconName } from "../ui/icon.tsx";
import type { Outgoing } from "./outbox.ts";

export interface Told {
  icon: IconName;
  text: string;
  tone: "plain" | "busy" | "bad";
}

/** Return how a message stands; away from the gateway, that is what one wants to know first. */
export function toldOf({ state, problem }: Pick<Outgoing, "state" | "problem">, online: boolean): Told {
  switch (state) {
    case "waiting":
      return online
        ? { icon: "clock", text: "Waiting to be sent", tone: "plain" }
        : { icon: "offline", text: "Will be sent when the gateway is back", tone: "busy" };
    case "sending":
      return { icon: "send", text: "Sending…", tone: "plain" };
    case "unconfirmed":
      return {
        icon: "question",
        text: "Delivery unconfirmed: no answer came. It is being sent again, and will arrive once.",
        tone: "busy",
      };
    case "accepted":
      return { icon: "check", text: "Accepted", tone: "plain" };
    case "refused":
      return { icon: "warning", text: problem || "The gateway refused it.", tone: "bad" };
  }
}

/** Return the messages of a session that are on their way; without one, those that will open one. */
export function outgoingOf(
  all: readonly Outgoing[],
  sessionId: string | null,
  sessionKey: string | null,
): readonly Outgoing[] {
  return all.filter((each) => {
    if (each.sessionId !== null) return each.sessionId === sessionId;
    return sessionId === null || (sessionKey !== null && each.opening?.key === sessionKey);
  });
}
