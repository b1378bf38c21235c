/**
 * The scroll position of a conversation: the reader keeps their place while turns above and below change.
 *
 * Only the turns near the viewport are drawn; for the others there is empty space of their measured or estimated height.
 */

import { type ReadonlySignal, signal } from "@preact/signals";
import type { Item, Turn } from "../journal/view.ts";

/** At the end, or at an offset below the start of a turn, so that turns loaded above do not matter. */
type Place = "end" | { id: string; offset: number };

/** Scrolling down to within this distance counts as reaching the end. */
const END_PX = 48;
/** Positions are fractions of pixels. */
const EXACTLY_PX = 2;
/** An element that the person opens or folds has its new size within this time. */
const BY_HAND_MS = 300;
const UNFOLDS = "[aria-expanded], summary";
/** Older turns load when the top is within this many viewport heights. */
const OLDER_WITHIN = 2;
/** Where the browser anchors the scroll position itself, it does so without stopping a running scroll. */
const ANCHORS_SCROLL = typeof CSS !== "undefined" && CSS.supports("overflow-anchor", "auto");

export class Scroller {
  /** Changes when other rows have to be drawn. */
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
  /** The first visible row, and its top before a render that may move it. */
  #anchor: { id: string; top: number } | null = null;

  get isAtEnd(): ReadonlySignal<boolean> {
    return this.#isAtEnd;
  }

  /** Start to manage a scrolling element and its content. */
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

  /** Observe the height of a row. */
  readonly measure = (row: HTMLElement): (() => void) => {
    this.#sizes.observe(row);
    return () => this.#sizes.unobserve(row);
  };

  /** Return which turns to draw. */
  layOut(turns: readonly Turn[]): Span {
    // At the very top no browser anchors the scroll position.
    if (!ANCHORS_SCROLL || turns[0]?.id !== this.#turns[0]?.id) this.#anchor = this.#found();
    this.#turns = turns;
    this.#starts = offsets(turns.map((turn) => this.#heights.get(turn.id) ?? this.#guess(turn)));
    const sight = this.#element?.clientHeight || innerHeight;
    return spanAt(this.#starts, this.#topOf(this.#place.value, sight), sight, sight);
  }

  /** After a render: restore the reader's position. */
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

  /** Scroll to a turn that is loaded. */
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
    const cached = this.#guesses.get(turn);
    if (cached !== undefined) return cached;
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
    // Growth below does not move the reader away from the end; only scrolling up does, however little.
    if (left <= EXACTLY_PX || (left < END_PX && scrollTop > this.#lastTop)) this.#isAtEnd.value = true;
    else if (scrollTop < this.#lastTop - 1) this.#isAtEnd.value = false;
    this.#lastTop = scrollTop;
    this.#follow(scrollTop, clientHeight);
  }

  /** Draw other rows once the reader has moved by half a viewport. */
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

  /** Stay at the end, but keep what the reader just opened under the pointer. */
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

/** The rows from `from` up to `to`, with the height of the others above and below. */
interface Span {
  from: number;
  to: number;
  above: number;
  below: number;
}

/** Return the start of each row, and the end of the list last. */
export function offsets(heights: Iterable<number>): number[] {
  const found = [0];
  let end = 0;
  for (const height of heights) {
    end += height;
    found.push(end);
  }
  return found;
}

/** Return the row at a point; the first for points above the list, the last for points below. */
export function rowAt(starts: readonly number[], point: number): number {
  let [low, high] = [0, Math.max(starts.length - 2, 0)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle]! <= point) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return which rows to draw for a viewport at `top` with height `sight`. */
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
/** Longer texts are cut when they are drawn. */
const LINES_MAX = 4_000;

function estimate(turn: Turn): number {
  return turn.items.reduce((sum, item) => sum + itemHeight(item), AROUND);
}

function itemHeight(item: Item): number {
  if (item.role === "tool" || item.role === "reasoning") return CARD;
  if (item.role === "question") return item.answer === null ? QUESTION : CARD;
  return LINE * Math.min(1 + Math.floor(item.text.length / CHARS_OF_A_LINE), LINES_MAX) + LINE;
}
