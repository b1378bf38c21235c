/** How an account stands with its platform, in plain words, and what to do about it. */

import type { Tone } from "../../ui/parts.tsx";
import type { ChannelView } from "../../wire.ts";

interface AccountStatus {
  text: string;
  tone: Tone;
  /** What to do; empty while there is nothing to do. */
  advice: string;
}

/** Return the state of an account.  One that is connected and hears nothing is not well either. */
export function accountStatus(account: ChannelView): AccountStatus {
  const { name, enabled, state, problem } = account;
  if (!enabled) {
    return {
      text: "Turned off",
      tone: "plain",
      advice: `To turn it on, set channels.${name}.enabled in the settings.`,
    };
  }
  switch (state) {
    case "connected":
      return problem
        ? { text: "No answer", tone: "busy", advice: "The gateway connects again by itself. Check its network." }
        : { text: "Connected", tone: "good", advice: "" };
    case "connecting":
      return { text: "Connecting", tone: "busy", advice: problem ? "The gateway tries again by itself." : "" };
    case "taken":
      return {
        text: "Used by another program",
        tone: "bad",
        advice:
          "Stop the other program, or give this account a bot of its own. The gateway looks again every 5 minutes.",
      };
    case "refused":
      return {
        text: "Refused",
        tone: "bad",
        advice: "After you have corrected the settings, restart the gateway.",
      };
    case "stopped":
      return {
        text: "Stopped",
        tone: "plain",
        advice: "It begins with the gateway. If it stays so, restart the gateway.",
      };
  }
}
