/**
 * The scroll position of a conversation: the reader keeps their place while turns above and below change.
 *
 * Only the turns near the viewport are drawn; for the others there is empty space of their measured or estimated height.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import type { Item, Turn } from "../journal/view.ts";

/** At the end, or so far below the beginning of a turn: turns that are loaded above do not change that. */
type Place = "end" | { id: string; offset: number };

/** Whoever comes down so near to the end is at the end. */
const END_PX = 48;
/** Places are not always whole pixels. */
const EXACTLY_PX = 2;
/** What is opened or folded by hand has its new size within this time. */
const BY_HAND_MS = 300;
const UNFOLDS = "[aria-expanded], summary";
/** Whoever comes so near to the top, in heights of what is seen at once, will want to read what is older. */
const OLDER_WITHIN = 2;
/** Where the browser itself keeps what is read in its place, it does so without stopping a scroll that is on its way. */
const KEEPS_PLACE = typeof CSS !== "undefined" && CSS.supports("overflow-anchor", "auto");

export class Scroller {
  readonly #place = signal<Place>("end");
  readonly #isAtEnd = signal(true);
  readonly #heights = new Map<string, number>();
  readonly #guesses = new WeakMap<Turn, number>();
  readonly #sizes = new ResizeObserver((changes) => this.#resized(changes));
  #element: HTMLElement | null = null;
  #turns: readonly Turn[] = [];
  #starts: readonly number[] = [0];
  #target: string | null = null;
  #lastTop = 0;
  #touchedAt = Number.NEGATIVE_INFINITY;
  /** The first row in sight, and where its upper edge was before something is drawn that might move it. */
  #anchor: { id: string; top: number } | null = null;

  /** Changes when other rows are to be drawn. */
  get place(): ReadonlySignal<Place> {
    return this.#place;
  }

  get isAtEnd(): ReadonlySignal<boolean> {
    return this.#isAtEnd;
  }

  /** Begin to look after an element that scrolls, and what is in it. */
  attach(element: HTMLElement, content: HTMLElement): () => void {
    this.#element = element;
    this.#sizes.observe(element);
    this.#sizes.observe(content);
    const scrolled = () => this.#scrolled();
    const touched = ({ target }: Event) => {
      if (target instanceof Element && target.closest(UNFOLDS)) this.#touchedAt = performance.now();
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    content.addEventListener("click", touched);
    return () => {
      element.removeEventListener("scroll", scrolled);
      content.removeEventListener("click", touched);
      this.#sizes.disconnect();
      this.#element = null;
    };
  }

  /** Know how tall a row is, from the first time it is laid out. */
  readonly measure = (row: HTMLElement): (() => void) => {
    this.#sizes.observe(row);
    return () => this.#sizes.unobserve(row);
  };

  /** Return which of the turns to draw. */
  layOut(turns: readonly Turn[]): Span {
    // At the very top no browser keeps what is read in its place when something comes above it.
    if (!KEEPS_PLACE || turns[0]?.id !== this.#turns[0]?.id) this.#anchor = this.#found();
    this.#turns = turns;
    this.#starts = offsets(turns.map((turn) => this.#heights.get(turn.id) ?? this.#guess(turn)));
    const sight = this.#element?.clientHeight || innerHeight;
    return spanAt(this.#starts, this.#topOf(this.#place.value, sight), sight, sight);
  }

  /** After something was drawn: be where the reader was. */
  settle(): void {
    if (this.#target !== null) this.#reach(this.#target);
    else if (this.#isAtEnd.peek()) this.#stay();
    else if (this.#anchor) this.#restore(this.#anchor);
    this.#anchor = null;
  }

  toEnd(): void {
    this.#target = null;
    this.#isAtEnd.value = true;
    this.#place.value = "end";
    this.#scrollToEnd();
  }

  /** Go to a turn that is there. */
  toTurn(id: string): void {
    this.#target = id;
    this.#isAtEnd.value = false;
    this.#place.value = { id, offset: 0 };
    this.settle();
  }

  get isNearTop(): boolean {
    const element = this.#element;
    return element !== null && element.scrollTop < OLDER_WITHIN * element.clientHeight;
  }

  #guess(turn: Turn): number {
    const known = this.#guesses.get(turn);
    if (known !== undefined) return known;
    const guess = estimate(turn);
    this.#guesses.set(turn, guess);
    return guess;
  }

  #topOf(place: Place, sight: number): number {
    const end = this.#starts.at(-1)! - sight;
    if (place === "end") return end;
    const index = this.#turns.findIndex((turn) => turn.id === place.id);
    return index < 0 ? end : this.#starts[index]! + place.offset;
  }

  #scrolled(): void {
    const element = this.#element;
    if (!element) return;
    const { scrollTop, clientHeight, scrollHeight } = element;
    const left = scrollHeight - scrollTop - clientHeight;
    // What grows below does not take the reader away from the end; only going up does, by however little.
    if (left <= EXACTLY_PX || (left < END_PX && scrollTop > this.#lastTop)) this.#isAtEnd.value = true;
    else if (scrollTop < this.#lastTop - 1) this.#isAtEnd.value = false;
    this.#lastTop = scrollTop;
    this.#follow(scrollTop, clientHeight);
  }

  /** Draw other rows once the reader has moved on by half of what is seen at once. */
  #follow(scrollTop: number, sight: number): void {
    if (this.#isAtEnd.peek()) {
      this.#place.value = "end";
      return;
    }
    const top = scrollTop - this.#feedTop();
    const index = rowAt(this.#starts, top);
    const turn = this.#turns[index];
    if (!turn) return;
    const before = this.#place.peek();
    if (before !== "end" && Math.abs(this.#topOf(before, sight) - top) < sight / 2) return;
    this.#place.value = { id: turn.id, offset: top - this.#starts[index]! };
  }

  #resized(changes: readonly ResizeObserverEntry[]): void {
    for (const { target } of changes) {
      const id = target instanceof HTMLElement ? target.dataset.turn : undefined;
      if (id && target.isConnected) this.#heights.set(id, (target as HTMLElement).offsetHeight);
    }
    if (this.#target === null) this.#stay();
  }

  /** At the end, stay there; but what the reader has just opened stays under the pointer. */
  #stay(): void {
    const element = this.#element;
    if (!element || !this.#isAtEnd.peek()) return;
    const isByHand = performance.now() - this.#touchedAt < BY_HAND_MS;
    const left = element.scrollHeight - element.scrollTop - element.clientHeight;
    if (isByHand && left > END_PX) this.#isAtEnd.value = false;
    else this.#scrollToEnd();
  }

  #scrollToEnd(): void {
    if (!this.#element) return;
    this.#element.scrollTop = this.#element.scrollHeight;
    this.#lastTop = this.#element.scrollTop;
  }

  #reach(id: string): void {
    const row = this.#rows().find((each) => each.dataset.turn === id);
    if (!row) return;
    this.#target = null;
    row.scrollIntoView({ block: "start" });
  }

  #restore(anchor: { id: string; top: number }): void {
    const row = this.#rows().find((each) => each.dataset.turn === anchor.id);
    if (!row || !this.#element) return;
    this.#element.scrollTop += row.getBoundingClientRect().top - anchor.top;
    this.#lastTop = this.#element.scrollTop;
  }

  #found(): { id: string; top: number } | null {
    const edge = this.#element?.getBoundingClientRect().top ?? 0;
    const row = this.#rows().find((each) => each.getBoundingClientRect().bottom > edge);
    return row ? { id: row.dataset.turn!, top: row.getBoundingClientRect().top } : null;
  }

  #rows(): HTMLElement[] {
    return this.#element ? [...this.#element.querySelectorAll<HTMLElement>("[data-turn]")] : [];
  }

  #feedTop(): number {
    return this.#element?.querySelector<HTMLElement>("[role=feed]")?.offsetTop ?? 0;
  }
}

/** A part of the list: the rows from `from` up to `to`, with the room that the others would take. */
interface Span {
  from: number;
  to: number;
  above: number;
  below: number;
}

/** Return where each row begins, and at last where the list ends. */
export function offsets(heights: Iterable<number>): number[] {
  const found = [0];
  let end = 0;
  for (const height of heights) {
    end += height;
    found.push(end);
  }
  return found;
}

/** Return the row that a point lies in; the first for what is above all, the last for what is below. */
export function rowAt(starts: readonly number[], point: number): number {
  let [low, high] = [0, Math.max(starts.length - 2, 0)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle]! <= point) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return what to draw when the list is seen from `top` on, and `sight` of it at once. */
export function spanAt(starts: readonly number[], top: number, sight: number, margin: number): Span {
  const count = starts.length - 1;
  if (count === 0) return { from: 0, to: 0, above: 0, below: 0 };
  const from = rowAt(starts, top - margin);
  const to = rowAt(starts, top + sight + margin) + 1;
  return { from, to, above: starts[from]!, below: starts[count]! - starts[to]! };
}

const LINE = 24;
const CHARS_OF_A_LINE = 90;
const AROUND = 96;
const CARD = 44;
const QUESTION = 180;
/** What is longer is cut where it is drawn. */
const LINES_MAX = 4_000;

function estimate(turn: Turn): number {
  return turn.items.reduce((sum, item) => sum + tall(item), AROUND);
}

function tall(item: Item): number {
  if (item.role === "tool" || item.role === "reasoning") return CARD;
  if (item.role === "question") return item.answer === null ? QUESTION : CARD;
  return LINE * Math.min(1 + Math.floor(item.text.length / CHARS_OF_A_LINE), LINES_MAX) + LINE;
}
