/** Messages that the gateway itself put in a person's place. */

const NOTE = /^\s*\[System note: ([^\]]*)\]?\s*/;

/** Return what the gateway says, and what it passes on; null for what a person wrote. */
export function systemNote(text: string): { note: string; rest: string } | null {
  const found = NOTE.exec(text);
  if (!found) return null;
  const note = found[1]!.trim();
  return { note: note && note[0]!.toUpperCase() + note.slice(1), rest: text.slice(found[0].length).trim() };
}
