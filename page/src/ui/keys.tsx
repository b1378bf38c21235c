/** Keyboard keys: as they are pressed, and as they are shown. */

const isMac = /Mac|iP(hone|ad)/.test(navigator.platform);

const LABELS: Record<string, string> = {
  mod: isMac ? "⌘" : "Ctrl",
  alt: isMac ? "⌥" : "Alt",
  shift: isMac ? "⇧" : "Shift",
  arrowup: "↑",
  arrowdown: "↓",
  delete: "Del",
  escape: "Esc",
  enter: "Enter",
};

/** Whether an event is a combination such as `mod+shift+o`; `mod` is Command on a Mac, else Control. */
export function isPressed(keys: string, event: KeyboardEvent): boolean {
  const parts = keys.split("+");
  const key = parts.at(-1)!;
  const mod = isMac ? event.metaKey : event.ctrlKey;
  const shift = parts.includes("shift");
  // A sign like ? needs Shift on some keyboards, and not on others.
  const shiftFits = shift === event.shiftKey || /^[^\p{L}\d]$/u.test(key);
  return (
    event.key.toLowerCase() === key &&
    mod === parts.includes("mod") &&
    event.altKey === parts.includes("alt") &&
    shiftFits
  );
}

export const keyLabels = (keys: string) => keys.split("+").map((each) => LABELS[each] ?? each.toUpperCase());

/** Whether the target takes text, so that letters are not shortcuts. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target instanceof HTMLTextAreaElement || isTextInput(target);
}

const BUTTONLIKE = new Set(["checkbox", "radio", "button", "submit", "range", "file"]);
const isTextInput = (target: HTMLElement) => target instanceof HTMLInputElement && !BUTTONLIKE.has(target.type);

/** Keys as key caps. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span class="keys">
      {keyLabels(keys).map((each) => (
        <kbd key={each}>{each}</kbd>
      ))}
    </span>
  );
}
