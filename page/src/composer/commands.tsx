/** Slash commands: messages to the gateway itself, and the menu that completes them. */

import { useEffect, useId, useState } from "preact/hooks";
import { COMMANDS } from "../wire.ts";
import type { Draft } from "./drafts.ts";
import type { Intent } from "./keyboard.ts";

type CommandName = keyof typeof COMMANDS;

interface Command {
  name: CommandName;
  /** What follows the name; what may be left out is in brackets. */
  argument: string;
  help: string;
}

const ALL: readonly Command[] = Object.entries(COMMANDS).map(([name, told]) => ({
  name: name as CommandName,
  ...told,
}));
/** These say something about a conversation, so they need one. */
const NEEDS_CONVERSATION: ReadonlySet<CommandName> = new Set([
  "new",
  "stop",
  "status",
  "title",
  "retry",
  "undo",
  "compress",
]);

/** Return the commands that a text may be completed to; none once it is longer than a command. */
export function suggestions(text: string): readonly Command[] {
  const prefix = /^\/([a-z]*)$/i.exec(text)?.[1]?.toLowerCase();
  return prefix === undefined ? [] : ALL.filter((each) => each.name.startsWith(prefix));
}

/** Return the command that a message is; null for a message to the agent, such as one that begins with a path. */
export function commandIn(text: string): CommandName | null {
  const word = /^\s*\/([a-z]+)(?=\s|$)/i.exec(text)?.[1]?.toLowerCase();
  return ALL.find((each) => each.name === word)?.name ?? null;
}

/** Return the text of a command, ready to be sent or continued. */
export const commandText = (name: CommandName) => (takesMore(name) ? `/${name} ` : `/${name}`);

export const takesMore = (name: CommandName) => COMMANDS[name].argument !== "";

/** Whether a command makes no sense before the first message. */
export const needsConversation = (name: CommandName) => NEEDS_CONVERSATION.has(name);

/** Whether a chosen command is complete: it takes nothing more, or nothing that it needs and it was typed in full. */
export function isComplete(command: Pick<Command, "name" | "argument">, typed: string): boolean {
  return !command.argument || (command.argument.startsWith("[") && typed.toLowerCase() === `/${command.name}`);
}

export interface CommandMenu {
  id: string;
  commands: readonly Command[];
  chosen: number;
  /** Put a command into the field, and send it if it is complete. */
  choose: (command: Command, send: () => void) => void;
  /** Act on a key in the menu. */
  press: (intent: Intent, send: () => void) => void;
}

export function useCommandMenu(draft: Draft): CommandMenu {
  const id = useId();
  const text = draft.text.value;
  const [place, setPlace] = useState({ text: "", at: 0, closed: false });
  // A position in the list is valid for one text only.
  const { at, closed } = place.text === text ? place : { at: 0, closed: false };
  const commands = closed ? [] : suggestions(text);
  const chosen = commands[at];
  const choose = (command: Command, send: () => void) => {
    const complete = isComplete(command, draft.text.value);
    draft.text.value = commandText(command.name);
    if (complete) send();
  };
  const steer = (intent: Intent, send: () => void) => {
    if (intent === "choose") chosen && choose(chosen, send);
    else if (intent === "complete") draft.text.value = chosen ? commandText(chosen.name) : text;
    else if (intent === "close") setPlace({ text, at, closed: true });
    else setPlace({ text, at: (at + (intent === "next" ? 1 : commands.length - 1)) % commands.length, closed });
  };
  return { id, commands, chosen: at, choose, press: steer };
}

interface CommandListProps {
  menu: CommandMenu;
  onChoose: (command: Command) => void;
}

/** The menu of commands.  The focus stays in the field, which names the selected command. */
export function CommandList({ menu: { id, commands, chosen }, onChoose }: CommandListProps) {
  useEffect(() => {
    document.getElementById(optionId(id, chosen))?.scrollIntoView({ block: "nearest" });
  }, [id, chosen]);
  return (
    <div class="command-list" role="listbox" id={id} aria-label="Commands">
      {commands.map((command, number) => (
        // biome-ignore lint/a11y/useFocusableInteractive: The keys of the field choose.
        // biome-ignore lint/a11y/useKeyWithClickEvents: The keys of the field choose.
        <div
          key={command.name}
          id={optionId(id, number)}
          role="option"
          aria-selected={number === chosen}
          onPointerDown={(event) => event.preventDefault()}
          onClick={() => onChoose(command)}
        >
          <code>{`/${command.name} ${command.argument}`.trim()}</code>
          <span>{command.help}</span>
        </div>
      ))}
    </div>
  );
}

export const optionId = (listId: string, number: number) => `${listId}-${number}`;
