/** A session as it is read: the newest turns first, what happens live behind them, and older ones on request. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { sessionOf } from "../activity.ts";
import { get, query, Refused } from "../api.ts";
import type { Link } from "../connection.ts";
import { shown } from "../outbox/outbox.ts";
import { mayPass, patience, pause } from "../patience.ts";
import type { JournalPage, SessionView } from "../wire.ts";
import { type Journalled, parseEntry, textOf } from "./entry.ts";
import { Gathering } from "./gathering.ts";
import { newer, type Reading, unread, withNews, withPage } from "./reading.ts";
import type { Heard } from "./sse.ts";
import { follow } from "./stream.ts";
import type { Turn, Used } from "./view.ts";

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
