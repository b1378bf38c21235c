/** The command palette: everything by its name. */

import "./palette.css";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { markedPieces } from "../sessions/search.tsx";
import { Icon } from "../ui/icon.tsx";
import { Keys } from "../ui/keys.tsx";
import { type PaletteEntry, paletteEntries } from "./commands.ts";
import { hidePalette } from "./shortcuts.tsx";

/** The palette: type some letters, choose with the arrow keys. */
export function Palette() {
  const [letters, setLetters] = useState("");
  const [chosen, setChosen] = useState(0);
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  const found = useMemo(() => paletteEntries(letters), [letters]);
  useLayoutEffect(() => element.current?.showModal(), []);
  useEffect(() => document.getElementById(`${id}-${chosen}`)?.scrollIntoView({ block: "nearest" }), [id, chosen]);
  const run = (entry: PaletteEntry | undefined) => {
    if (!entry) return;
    // Closing returns the focus to where it was; the command may then move it.
    element.current?.close();
    entry.command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const next = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, Home: 0, End: found.length - 1 }[event.key];
    if (event.isComposing || (next === undefined && event.key !== "Enter")) return;
    event.preventDefault();
    const typed = (event.currentTarget as HTMLInputElement).value;
    // A fast typist presses Enter before the letters have been rendered.
    if (next === undefined) run(typed === letters ? found[chosen] : paletteEntries(typed)[0]);
    else setChosen((next + found.length) % found.length);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: The click beside it is for the mouse; Escape does the same.
    <dialog
      ref={element}
      class="palette"
      aria-label="Commands and sessions"
      onClose={hidePalette}
      onClick={(event) => event.target === element.current && element.current?.close()}
    >
      <div class="palette-field">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="Search commands and sessions"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={found.length ? `${id}-${chosen}` : undefined}
          placeholder="Search commands and sessions"
          autocomplete="off"
          spellcheck={false}
          value={letters}
          onInput={(event) => {
            setLetters(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div class="palette-list" role="listbox" id={id} aria-label="Results">
        {found.map((entry, index) => (
          <PaletteLine
            key={`${entry.command.group}/${entry.command.key}`}
            id={`${id}-${index}`}
            entry={entry}
            isChosen={index === chosen}
            onPoint={() => setChosen(index)}
            onRun={() => run(entry)}
          />
        ))}
      </div>
    </dialog>
  );
}

interface PaletteLineProps {
  id: string;
  entry: PaletteEntry;
  isChosen: boolean;
  onPoint: () => void;
  onRun: () => void;
}

/** One entry, with the typed letters highlighted. */
function PaletteLine({ id, entry: { command, at }, isChosen, onPoint, onRun }: PaletteLineProps) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: The keys are those of the field.
    // biome-ignore lint/a11y/useFocusableInteractive: The focus stays in the field, which names the chosen one.
    <div class="offer" role="option" id={id} aria-selected={isChosen} onPointerMove={onPoint} onClick={onRun}>
      <Icon name={command.icon} size={16} />
      <span class="offer-label">
        {markedPieces(
          command.label,
          at.map((each) => [each, each + 1] as const),
        ).map((piece) => (piece.marked ? <b key={piece.at}>{piece.text}</b> : piece.text))}
      </span>
      {command.keys ? <Keys keys={command.keys} /> : <span class="offer-group">{command.group}</span>}
    </div>
  );
}
