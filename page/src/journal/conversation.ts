/** A session that is open: its newest turns first, live entries behind them, and older turns on request. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { get, query, Refused } from "../api.ts";
import type { ConnectionState } from "../connection.ts";
import { markArrived } from "../outbox/outbox.ts";
import { backoffMs, isTransient, waitToRetry } from "../retry.ts";
import { sessionOf } from "../sessions/store.ts";
import type { JournalPage, SessionView, Usage } from "../wire.ts";
import { type JournalEntry, parseEntry, textField } from "./entries.ts";
import { emptyView, fold } from "./fold.ts";
import { followStream, type ServerEvent } from "./stream.ts";
import { addUsage, noUsage, usageOf } from "./turn_status.ts";
import type { TokenUsage, Turn, View } from "./view.ts";

const NOT_SIGNED_IN = 401;
/** Turns per request: enough for a screen, and for loading through to a turn. */
const PAGE_TURNS = 30;
const PAGE_TURNS_MAX = 200;
/** How many recent sessions stay in the cache, so that going back shows them at once. */
const CACHED_MAX = 8;

export interface Conversation {
  readonly id: string;
  readonly session: ReadonlySignal<SessionView | null>;
  /** The visible turns, in order. */
  readonly turns: ReadonlySignal<readonly Turn[]>;
  readonly used: ReadonlySignal<TokenUsage>;
  readonly link: ReadonlySignal<ConnectionState>;
  /** Why the session cannot be loaded. */
  readonly problem: ReadonlySignal<unknown>;
  readonly older: ReadonlySignal<"more" | "loading" | "none">;
  loadOlder(): Promise<void>;
  /** Load older turns until this one; returns whether it exists. */
  loadThrough(turnId: string): Promise<boolean>;
  close(): void;
}

/** The cache of recent sessions with their cursor; the most recent one is last. */
const cache = new Map<string, { loaded: LoadedJournal; cursor: number }>();

/** Load a session and follow it, until it is closed. */
export function openConversation(id: string): Conversation {
  return new OpenSession(id);
}

class OpenSession implements Conversation {
  readonly #loaded: Signal<LoadedJournal>;
  readonly #link = signal<ConnectionState>("connecting");
  readonly #problem = signal<unknown>(null);
  /** Aborts the requests for a journal that is no longer read. */
  #reader = new AbortController();
  readonly #news = new FrameBatch<JournalEntry>((entries) => this.#addEntries(entries));
  /** Every entry up to this one has arrived, as far as its turn is loaded. */
  #cursor: number;
  #unfollow = () => {};
  readonly #paging = signal<Promise<void> | null>(null);

  readonly link: ReadonlySignal<ConnectionState> = this.#link;
  readonly problem: ReadonlySignal<unknown> = this.#problem;
  readonly session = computed(() => newerSession(this.#loaded.value.session, sessionOf(this.id)));
  readonly turns = computed(() => this.#loaded.value.view.turns.filter((each) => !each.hidden));
  readonly used = computed(() => this.#loaded.value.used);
  readonly older = computed(() => {
    if (this.#paging.value) return "loading";
    return this.#loaded.value.next === null ? "none" : "more";
  });

  constructor(readonly id: string) {
    const { loaded, cursor } = cache.get(id) ?? { loaded: nothingLoaded, cursor: 0 };
    this.#loaded = signal(loaded);
    this.#cursor = cursor;
    if (loaded.session) this.#follow();
    else this.#begin();
  }

  async loadOlder(): Promise<void> {
    await this.#page(PAGE_TURNS);
  }

  async loadThrough(turnId: string): Promise<boolean> {
    await this.#paging.peek();
    const isThere = () => this.#loaded.peek().view.turns.some((each) => each.id === turnId);
    while (!isThere() && this.#loaded.peek().next !== null) await this.#page(PAGE_TURNS_MAX);
    return isThere();
  }

  close(): void {
    this.#reader.abort();
    this.#unfollow();
    this.#news.flush();
    cache.delete(this.id);
    const loaded = this.#loaded.peek();
    if (this.#problem.peek() || !loaded.session) return;
    cache.set(this.id, { loaded, cursor: this.#cursor });
    if (cache.size > CACHED_MAX) cache.delete([...cache.keys()][0]!);
  }

  /** Load the newest turns, and follow what comes after them. */
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

  async #first(signal: AbortSignal): Promise<void> {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        const page = await this.#ask(PAGE_TURNS, null, signal);
        if (signal.aborted) return;
        this.#cursor = page.seq;
        this.#addPage(page);
        this.#follow();
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#link.value = "away";
        this.#problem.value = error instanceof Refused && error.status !== NOT_SIGNED_IN ? error : null;
        if (error instanceof Refused && !isTransient(error.status)) return;
      }
      await waitToRetry(backoffMs(tries));
    }
  }

  #page(turns: number): Promise<void> {
    const next = this.#loaded.peek().next;
    const running = this.#paging.peek();
    if (running || next === null) return running ?? Promise.resolve();
    return this.#load(this.#older(turns, next, this.#reader.signal));
  }

  async #older(turns: number, next: string, signal: AbortSignal): Promise<void> {
    try {
      const page = await this.#ask(turns, next, signal);
      if (!signal.aborted) this.#addPage(page);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #ask(turns: number, cursor: string | null, signal: AbortSignal): Promise<JournalPage> {
    return get<JournalPage>(`${pathOf(this.id)}/journal${query({ turns, cursor })}`, { signal });
  }

  #addPage(page: JournalPage): void {
    this.#problem.value = null;
    this.#loaded.value = withPage(this.#loaded.peek(), page);
    markArrived(page.entries.filter(isMessage).map(arrivalOf));
  }

  #follow(): void {
    this.#unfollow = followStream(`${pathOf(this.id)}/events`, () => this.#cursor, {
      onEvent: (event) => this.#handleEvent(event),
      onConnection: (link) => {
        this.#link.value = link;
      },
      onRefused: (refused) => {
        this.#problem.value = refused;
      },
    });
  }

  #handleEvent({ event, data }: ServerEvent): void {
    if (event === "reset") this.#restart();
    const entry = event === "message" ? parseEntry(data) : null;
    if (!entry || entry.seq <= this.#cursor) return;
    this.#cursor = entry.seq;
    this.#news.add(entry);
  }

  #addEntries(entries: readonly JournalEntry[]): void {
    this.#loaded.value = withEntries(this.#loaded.peek(), entries);
    markArrived(entries.filter(isMessage).map(arrivalOf));
  }

  /** The gateway has another journal now: start again. */
  #restart(): void {
    this.#reader.abort();
    this.#reader = new AbortController();
    this.#unfollow();
    this.#news.drop();
    this.#loaded.value = nothingLoaded;
    this.#begin();
  }
}

const pathOf = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const isMessage = (entry: JournalEntry) => entry.kind === "turn.accepted";
const arrivalOf = (entry: JournalEntry) => ({ id: entry.turn_id, key: textField(entry, "key") });

interface LoadedJournal {
  readonly view: View;
  /** Null before the first page. */
  readonly session: SessionView | null;
  /** The cursor for older turns; null if there are none. */
  readonly next: string | null;
  /** The usage up to the entry `usedUpTo`. */
  readonly used: TokenUsage;
  readonly usedUpTo: number;
}

const nothingLoaded: LoadedJournal = { view: emptyView, session: null, next: null, used: noUsage, usedUpTo: 0 };

/** Add a page: the newest turns, or older ones. */
function withPage(loaded: LoadedJournal, page: JournalPage): LoadedJournal {
  const isLater = page.seq >= loaded.usedUpTo;
  return {
    view: fold(loaded.view, page.entries),
    session: page.session,
    next: page.next_cursor ?? null,
    used: isLater ? tokenUsage(page.used) : loaded.used,
    usedUpTo: isLater ? page.seq : loaded.usedUpTo,
  };
}

/** Add live entries. */
function withEntries(loaded: LoadedJournal, entries: readonly JournalEntry[]): LoadedJournal {
  const { usedUpTo } = loaded;
  const spent = entries.filter((each) => each.kind === "usage" && each.seq > usedUpTo);
  return {
    ...loaded,
    view: fold(loaded.view, entries),
    used: spent.map(usageOf).reduce(addUsage, loaded.used),
    usedUpTo: entries.reduce((highest, each) => Math.max(highest, each.seq), usedUpTo),
  };
}

/** Return the newer of two versions of a session: its own page's, or the store's. */
function newerSession(read: SessionView | null, watched: SessionView | undefined): SessionView | null {
  if (!read || !watched) return read ?? watched ?? null;
  return watched.updated_at >= read.updated_at ? watched : read;
}

function tokenUsage(usage: Usage): TokenUsage {
  return {
    model: usage.model ?? "",
    input: usage.input_tokens ?? 0,
    output: usage.output_tokens ?? 0,
    cached: usage.cached_tokens ?? 0,
    costMicros: usage.cost_micros ?? 0,
  };
}

/** A hidden page has no animation frames. */
const HIDDEN_MS = 200;

class FrameBatch<T> {
  #collected: T[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly onFlush: (batch: readonly T[]) => void) {}

  add(each: T): void {
    this.#collected.push(each);
    if (this.#collected.length > 1) return;
    this.#frame = requestAnimationFrame(this.flush);
    this.#timer = setTimeout(this.flush, HIDDEN_MS);
  }

  /** Pass on what was collected. */
  readonly flush = (): void => {
    const batch = this.#collected;
    this.drop();
    if (batch.length) this.onFlush(batch);
  };

  drop(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#collected = [];
  }
}
