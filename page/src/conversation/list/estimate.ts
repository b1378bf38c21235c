/** How tall a turn will probably be: good enough for the scroll bar until it is measured. */

import type { Item, Turn } from "../../journal/view.ts";

const LINE = 24;
const CHARS_OF_A_LINE = 90;
const AROUND = 96;
const CARD = 44;
const QUESTION = 180;
/** What is longer is cut where it is drawn. */
const LINES_MAX = 4_000;

export function estimate(turn: Turn): number {
  return turn.items.reduce((sum, item) => sum + tall(item), AROUND);
}

function tall(item: Item): number {
  if (item.role === "tool" || item.role === "reasoning") return CARD;
  if (item.role === "question") return item.answer === null ? QUESTION : CARD;
  return LINE * Math.min(1 + Math.floor(item.text.length / CHARS_OF_A_LINE), LINES_MAX) + LINE;
}
