/** A session that is open: its newest turns first, live entries behind them, and older turns on request. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { get, query, Refused } from "../api.ts";
import type { Link } from "../connection.ts";
import { shown } from "../outbox/outbox.ts";
import { mayPass, patience, pause } from "../retry.ts";
import { sessionOf } from "../sessions/store.ts";
import type { JournalPage, SessionView, Usage } from "../wire.ts";
import { type Journalled, parseEntry, textOf } from "./entries.ts";
import { emptyView, fold } from "./fold.ts";
import { follow, type Heard } from "./stream.ts";
import { nothingUsed, sum, usedIn } from "./turn_status.ts";
import type { Turn, Used, View } from "./view.ts";

const NOT_SIGNED_IN = 401;
/** Turns that are read at once: what fills a screen, and what is good for searching. */
const TURNS = 30;
const TURNS_AT_MOST = 200;
/** Sessions that are kept as they were read, so that going back to one shows it at once. */
const KEPT = 8;

export interface Conversation {
  readonly id: string;
  readonly session: ReadonlySignal<SessionView | null>;
  /** The turns that are shown, in order. */
  readonly turns: ReadonlySignal<readonly Turn[]>;
  readonly used: ReadonlySignal<Used>;
  readonly link: ReadonlySignal<Link>;
  /** Why it cannot be read. */
  readonly problem: ReadonlySignal<unknown>;
  readonly older: ReadonlySignal<"more" | "loading" | "none">;
  loadOlder(): Promise<void>;
  /** Read back to a turn; returns whether there is one. */
  loadThrough(turnId: string): Promise<boolean>;
  close(): void;
}

/** What was read of sessions that were left, and up to which entry; the last one was left last. */
const kept = new Map<string, { reading: Reading; cursor: number }>();

/** Read a session from now on, until it is closed. */
export function openConversation(id: string): Conversation {
  return new OpenSession(id);
}

class OpenSession implements Conversation {
  readonly #reading: Signal<Reading>;
  readonly #link = signal<Link>("connecting");
  readonly #problem = signal<unknown>(null);
  /** Ends what is asked of a journal, once that is read no more. */
  #reader = new AbortController();
  readonly #news = new Gathering<Journalled>((entries) => this.#add(entries));
  /** Every entry up to this one has been heard, as far as its turn is loaded. */
  #cursor: number;
  #unfollow = () => {};
  readonly #paging = signal<Promise<void> | null>(null);

  readonly link: ReadonlySignal<Link> = this.#link;
  readonly problem: ReadonlySignal<unknown> = this.#problem;
  readonly session = computed(() => newer(this.#reading.value.session, sessionOf(this.id)));
  readonly turns = computed(() => this.#reading.value.view.turns.filter((each) => !each.hidden));
  readonly used = computed(() => this.#reading.value.used);
  readonly older = computed(() => {
    if (this.#paging.value) return "loading";
    return this.#reading.value.next === null ? "none" : "more";
  });

  constructor(readonly id: string) {
    const { reading, cursor } = kept.get(id) ?? { reading: unread, cursor: 0 };
    this.#reading = signal(reading);
    this.#cursor = cursor;
    if (reading.session) this.#follow();
    else this.#begin();
  }

  async loadOlder(): Promise<void> {
    await this.#page(TURNS);
  }

  async loadThrough(turnId: string): Promise<boolean> {
    await this.#paging.peek();
    const isThere = () => this.#reading.peek().view.turns.some((each) => each.id === turnId);
    while (!isThere() && this.#reading.peek().next !== null) await this.#page(TURNS_AT_MOST);
    return isThere();
  }

  close(): void {
    this.#reader.abort();
    this.#unfollow();
    this.#news.flush();
    kept.delete(this.id);
    const reading = this.#reading.peek();
    if (this.#problem.peek() || !reading.session) return;
    kept.set(this.id, { reading, cursor: this.#cursor });
    if (kept.size > KEPT) kept.delete([...kept.keys()][0]!);
  }

  /** Read the newest turns, as soon as they can be had, and follow what comes after them. */
  #begin(): void {
    this.#load(this.#first(this.#reader.signal));
  }

  #load(loading: Promise<void>): Promise<void> {
    const paging = loading.finally(() => {
      if (this.#paging.peek() === paging) this.#paging.value = null;
    });
    this.#paging.value = paging;
    return paging;
  }

  async #first(reading: AbortSignal): Promise<void> {
    for (let tries = 0; !reading.aborted; tries += 1) {
      try {
        const page = await this.#ask(TURNS, null, reading);
        if (reading.aborted) return;
        this.#cursor = page.seq;
        this.#take(page);
        this.#follow();
        return;
      } catch (error) {
        if (reading.aborted) return;
        this.#link.value = "away";
        this.#problem.value = error instanceof Refused && error.status !== NOT_SIGNED_IN ? error : null;
        if (error instanceof Refused && !mayPass(error.status)) return;
      }
      await pause(patience(tries));
    }
  }

  #page(turns: number): Promise<void> {
    const next = this.#reading.peek().next;
    const running = this.#paging.peek();
    if (running || next === null) return running ?? Promise.resolve();
    return this.#load(this.#older(turns, next, this.#reader.signal));
  }

  async #older(turns: number, next: string, reading: AbortSignal): Promise<void> {
    try {
      const page = await this.#ask(turns, next, reading);
      if (!reading.aborted) this.#take(page);
    } catch (error) {
      if (!reading.aborted) throw error;
    }
  }

  #ask(turns: number, cursor: string | null, signal: AbortSignal): Promise<JournalPage> {
    return get<JournalPage>(`${pathOf(this.id)}/journal${query({ turns, cursor })}`, { signal });
  }

  #take(page: JournalPage): void {
    this.#problem.value = null;
    this.#reading.value = withPage(this.#reading.peek(), page);
    shown(page.entries.filter(isMessage).map(shownBy));
  }

  #follow(): void {
    this.#unfollow = follow(`${pathOf(this.id)}/events`, () => this.#cursor, {
      onEvent: (heard) => this.#hear(heard),
      onLink: (link) => {
        this.#link.value = link;
      },
      onRefused: (refused) => {
        this.#problem.value = refused;
      },
    });
  }

  #hear({ event, data }: Heard): void {
    if (event === "reset") this.#restart();
    const entry = event === "message" ? parseEntry(data) : null;
    if (!entry || entry.seq <= this.#cursor) return;
    this.#cursor = entry.seq;
    this.#news.add(entry);
  }

  #add(entries: readonly Journalled[]): void {
    this.#reading.value = withNews(this.#reading.peek(), entries);
    shown(entries.filter(isMessage).map(shownBy));
  }

  /** The journal is another one than the one that was read: forget that. */
  #restart(): void {
    this.#reader.abort();
    this.#reader = new AbortController();
    this.#unfollow();
    this.#news.drop();
    this.#reading.value = unread;
    this.#begin();
  }
}

const pathOf = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const isMessage = (entry: Journalled) => entry.kind === "turn.accepted";
const shownBy = (entry: Journalled) => ({ id: entry.turn_id, key: textOf(entry, "key") });

export interface Reading {
  readonly view: View;
  /** Nothing before the first page. */
  readonly session: SessionView | null;
  /** Where the turns before the first go on; null when there are none. */
  readonly next: string | null;
  /** What had been used up to the entry `usedUpTo`. */
  readonly used: Used;
  readonly usedUpTo: number;
}

export const unread: Reading = { view: emptyView, session: null, next: null, used: nothingUsed, usedUpTo: 0 };

/** Return a reading with a page more: the newest turns, or those before the ones that it has. */
export function withPage(reading: Reading, page: JournalPage): Reading {
  const isLater = page.seq >= reading.usedUpTo;
  return {
    view: fold(reading.view, page.entries),
    session: page.session,
    next: page.next_cursor ?? null,
    used: isLater ? usedOf(page.used) : reading.used,
    usedUpTo: isLater ? page.seq : reading.usedUpTo,
  };
}

/** Return a reading with what has just happened. */
export function withNews(reading: Reading, entries: readonly Journalled[]): Reading {
  const { usedUpTo } = reading;
  const spent = entries.filter((each) => each.kind === "usage" && each.seq > usedUpTo);
  return {
    ...reading,
    view: fold(reading.view, entries),
    used: spent.map(usedIn).reduce(sum, reading.used),
    usedUpTo: entries.reduce((highest, each) => Math.max(highest, each.seq), usedUpTo),
  };
}

/** Return the later word on a session: that of its page, or of whoever watches all of them. */
export function newer(read: SessionView | null, watched: SessionView | undefined): SessionView | null {
  if (!read || !watched) return read ?? watched ?? null;
  return watched.updated_at >= read.updated_at ? watched : read;
}

function usedOf(usage: Usage): Used {
  return {
    model: usage.model ?? "",
    input: usage.input_tokens ?? 0,
    output: usage.output_tokens ?? 0,
    cached: usage.cached_tokens ?? 0,
    costMicros: usage.cost_micros ?? 0,
  };
}

/** A hidden page draws no frames. */
const HIDDEN_MS = 200;

export class Gathering<T> {
  #gathered: T[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly give: (gathered: readonly T[]) => void) {}

  add(each: T): void {
    this.#gathered.push(each);
    if (this.#gathered.length > 1) return;
    this.#frame = requestAnimationFrame(this.flush);
    this.#timer = setTimeout(this.flush, HIDDEN_MS);
  }

  /** Give on what is there now. */
  readonly flush = (): void => {
    const gathered = this.#gathered;
    this.drop();
    if (gathered.length) this.give(gathered);
  };

  drop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#gathered = [];
  }
}
