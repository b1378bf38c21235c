/** The commands that are offered while a text begins like one. */

import { useId, useState } from "preact/hooks";
import { type Command, suggestions, takesMore, written } from "./commands.ts";
import type { Intent } from "./keys.ts";
import type { Writing } from "./writing.ts";

export interface Offer {
  id: string;
  commands: readonly Command[];
  chosen: number;
  /** Have a command in the field, and send it where there is nothing to add. */
  take: (command: Command, send: () => void) => void;
  /** Do what a key means in the list. */
  steer: (intent: Intent, send: () => void) => void;
}

export function useOffer(writing: Writing): Offer {
  const id = useId();
  const text = writing.text.value;
  const [place, setPlace] = useState({ text: "", at: 0, closed: false });
  // The place in a list is worth nothing in the next one.
  const { at, closed } = place.text === text ? place : { at: 0, closed: false };
  const commands = closed ? [] : suggestions(text);
  const chosen = commands[at];
  const take = (command: Command, send: () => void) => {
    writing.text.value = written(command.name);
    if (!takesMore(command.name)) send();
  };
  const steer = (intent: Intent, send: () => void) => {
    if (intent === "choose") chosen && take(chosen, send);
    else if (intent === "complete") writing.text.value = chosen ? written(chosen.name) : text;
    else if (intent === "close") setPlace({ text, at, closed: true });
    else setPlace({ text, at: (at + (intent === "next" ? 1 : commands.length - 1)) % commands.length, closed });
  };
  return { id, commands, chosen: at, take, steer };
}
