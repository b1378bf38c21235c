/** What it takes to show a call of some tool. */

import type { ComponentChildren } from "preact";
import type { CallItem } from "../../journal/view.ts";
import type { IconName } from "../../ui/icon.tsx";

export interface CallProps {
  call: CallItem;
  /** The turn that it belongs to. */
  turnId: string;
}

export interface Renderer {
  icon: IconName;
  /** What is done, in a word or two. */
  name: (call: CallItem) => string;
  /** To what: the command, the file, the words that are looked for. */
  subject: (call: CallItem) => string;
  /** What came of it, very short. */
  outcome?: (call: CallItem) => string;
  /** Shown without being asked for. */
  isOpen?: (call: CallItem) => boolean;
  Body: (props: CallProps) => ComponentChildren;
}
