/** What one may say first, to see what there is. */

import type { IconName } from "../ui/icon.tsx";

export interface Example {
  icon: IconName;
  title: string;
  text: string;
}

/** The demonstration does what these say, each of which shows something else of the machinery. */
export const FOR_DEMONSTRATION: readonly Example[] = [
  { icon: "play", title: "Watch an answer come in", text: "count to 40, slowly" },
  { icon: "question", title: "Be asked something", text: "ask me which harbour is the most beautiful" },
  { icon: "terminal", title: "Run a command", text: "run: ls" },
  { icon: "branch", title: "Hand work to a helper", text: "delegate: count to 5" },
];

export const FOR_MODELS: readonly Example[] = [
  { icon: "info", title: "See what it can do", text: "What can you do on this machine? List your tools, briefly." },
  { icon: "file", title: "Look around", text: "Look at the files in the workspace and tell me what they are about." },
  { icon: "clock", title: "Plan ahead", text: "Remind me every weekday at 9:00 to plan the day." },
  {
    icon: "brain",
    title: "Have it remember",
    text: "Remember that I like short answers. Then tell me what you know about me.",
  },
];
