/** Commands: messages to the gateway itself, which begin with a slash and a known word. */

import { COMMANDS } from "../wire.ts";

export type CommandName = keyof typeof COMMANDS;

export interface Command {
  name: CommandName;
  help: string;
}

const ALL: readonly Command[] = Object.entries(COMMANDS).map(([name, help]) => ({ name: name as CommandName, help }));
/** Whoever has chosen one of these has more to write. */
const TAKES_MORE: ReadonlySet<CommandName> = new Set(["title"]);

/** Return the commands that a text may become; none once it is more than the beginning of one. */
export function suggestions(text: string): readonly Command[] {
  const begun = /^\/([a-z]*)$/i.exec(text)?.[1]?.toLowerCase();
  return begun === undefined ? [] : ALL.filter((each) => each.name.startsWith(begun));
}

/** Return the command that a message is; null for a message to the agent, such as one that begins with a path. */
export function commandIn(text: string): CommandName | null {
  const word = /^\s*\/([a-z]+)(?=\s|$)/i.exec(text)?.[1]?.toLowerCase();
  return ALL.find((each) => each.name === word)?.name ?? null;
}

/** Return the text that choosing a command makes. */
export const written = (name: CommandName) => (TAKES_MORE.has(name) ? `/${name} ` : `/${name}`);

export const takesMore = (name: CommandName) => TAKES_MORE.has(name);
