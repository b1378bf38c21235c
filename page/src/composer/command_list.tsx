import { useEffect } from "preact/hooks";
import type { Command } from "./commands.ts";
import type { Offer } from "./offer.ts";

interface CommandListProps {
  offer: Offer;
  onChoose: (command: Command) => void;
}

/** The commands that the text may become.  The focus stays in the field, which names the chosen one. */
export function CommandList({ offer: { id, commands, chosen }, onChoose }: CommandListProps) {
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
          <code>/{command.name}</code>
          <span>{command.help}</span>
        </div>
      ))}
    </div>
  );
}

export const optionId = (listId: string, number: number) => `${listId}-${number}`;
