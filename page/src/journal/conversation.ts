/** A session as it is read: the newest turns first, what happens live behind them, and older ones on request. */

import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { sessionOf } from "../activity.ts";
import { get, query, Refused } from "../api.ts";
import type { Link } from "../connection.ts";
import { shown } from "../outbox/outbox.ts";
import { mayPass, patience, pause } from "../patience.ts";
import type { JournalPage, SessionView, Usage } from "../wire.ts";
import { type Journalled, parseEntry, textOf } from "./entry.ts";
import { emptyView, fold } from "./fold.ts";
import { Gathering } from "./gathering.ts";
import type { Heard } from "./sse.ts";
import { nothingUsed, sum, usedIn } from "./standing.ts";
import { follow } from "./stream.ts";
import type { Turn, Used, View } from "./view.ts";

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

/** As far as a session has been read. */
interface Read {
  view: View;
  session: SessionView | null;
  /** Everything up to this entry has been seen, as far as its turn is loaded. */
  cursor: number;
  /** Where the turns before the first go on; null when there are none. */
  next: string | null;
  /** What had been used up to the entry `usedUpTo`. */
  used: Used;
  usedUpTo: number;
}

const unread: Read = { view: emptyView, session: null, cursor: 0, next: null, used: nothingUsed, usedUpTo: 0 };
/** The last one was left last. */
const kept = new Map<string, Read>();

/** Read a session from now on, until it is closed. */
export function openConversation(id: string): Conversation {
  return new Reading(id);
}

/** Have a session open for as long as something shows it. */
export function useConversation(id: string): Conversation {
  const conversation = useMemo(() => openConversation(id), [id]);
  useEffect(() => () => conversation.close(), [conversation]);
  return conversation;
}

class Reading implements Conversation {
  readonly #read: Signal<Read>;
  readonly #link = signal<Link>("connecting");
  readonly #problem = signal<unknown>(null);
  readonly #closed = new AbortController();
  readonly #news = new Gathering<Journalled>((entries) => this.#add(entries));
  /** Ahead of what is read by what has been gathered and not been given on. */
  #cursor: number;
  #unfollow = () => {};
  readonly #paging = signal<Promise<void> | null>(null);

  readonly link: ReadonlySignal<Link> = this.#link;
  readonly problem: ReadonlySignal<unknown> = this.#problem;
  readonly session = computed(() => newer(this.#read.value.session, sessionOf(this.id)));
  readonly turns = computed(() => this.#read.value.view.turns.filter((each) => !each.hidden));
  readonly used = computed(() => this.#read.value.used);
  readonly older = computed(() => {
    if (this.#paging.value) return "loading";
    return this.#read.value.next === null ? "none" : "more";
  });

  constructor(readonly id: string) {
    this.#read = signal(kept.get(id) ?? unread);
    this.#cursor = this.#read.peek().cursor;
    if (this.#read.peek().session) this.#follow();
    else this.#begin();
  }

  async loadOlder(): Promise<void> {
    await this.#page(TURNS);
  }

  async loadThrough(turnId: string): Promise<boolean> {
    await this.#paging.peek();
    const isThere = () => this.#read.peek().view.turns.some((each) => each.id === turnId);
    while (!isThere() && this.#read.peek().next !== null) await this.#page(TURNS_AT_MOST);
    return isThere();
  }

  close(): void {
    this.#closed.abort();
    this.#unfollow();
    this.#news.flush();
    kept.delete(this.id);
    if (this.#problem.peek() || !this.#read.peek().session) return;
    kept.set(this.id, { ...this.#read.peek(), cursor: this.#cursor });
    if (kept.size > KEPT) kept.delete([...kept.keys()][0]!);
  }

  /** Read the newest turns, as soon as they can be had, and follow what comes after them. */
  #begin(): void {
    this.#paging.value = this.#first().finally(() => {
      this.#paging.value = null;
    });
  }

  async #first(): Promise<void> {
    for (let tries = 0; !this.#closed.signal.aborted; tries += 1) {
      try {
        const page = await this.#ask(TURNS, null);
        this.#cursor = page.seq;
        this.#take(page);
        this.#follow();
        return;
      } catch (error) {
        if (this.#closed.signal.aborted) return;
        this.#link.value = "away";
        this.#problem.value = error instanceof Refused && error.status !== SIGNED_OUT ? error : null;
        if (error instanceof Refused && !mayPass(error.status)) return;
      }
      await pause(patience(tries));
    }
  }

  #page(turns: number): Promise<void> {
    const next = this.#read.peek().next;
    const running = this.#paging.peek();
    if (running || next === null) return running ?? Promise.resolve();
    const paging = this.#ask(turns, next)
      .then((page) => this.#take(page))
      .finally(() => {
        this.#paging.value = null;
      });
    this.#paging.value = paging;
    return paging;
  }

  #ask(turns: number, cursor: string | null): Promise<JournalPage> {
    return get<JournalPage>(`${pathOf(this.id)}/journal${query({ turns, cursor })}`, { signal: this.#closed.signal });
  }

  #take(page: JournalPage): void {
    const read = this.#read.peek();
    const view = fold(read.view, page.entries);
    const used = page.seq < read.usedUpTo ? {} : { used: usedOf(page.used), usedUpTo: page.seq };
    this.#problem.value = null;
    this.#read.value = { ...read, ...used, view, session: page.session, next: page.next_cursor ?? null };
    shown(page.entries.filter(isMessage).map((each) => ({ id: each.turn_id, sessionId: this.id, text: null })));
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
    const read = this.#read.peek();
    const spent = entries.filter((each) => each.kind === "usage" && each.seq > read.usedUpTo);
    const used = spent.map(usedIn).reduce(sum, read.used);
    const usedUpTo = Math.max(read.usedUpTo, entries.at(-1)!.seq);
    this.#read.value = { ...read, used, usedUpTo, view: fold(read.view, entries) };
    const messages = entries.filter(isMessage);
    shown(messages.map((each) => ({ id: each.turn_id, sessionId: this.id, text: textOf(each) })));
  }

  /** The journal is another one than the one that was read: forget that. */
  #restart(): void {
    this.#unfollow();
    this.#news.drop();
    this.#read.value = unread;
    this.#begin();
  }
}

const SIGNED_OUT = 401;

const pathOf = (id: string) => `/api/sessions/${encodeURIComponent(id)}`;
const isMessage = (entry: Journalled) => entry.kind === "turn.accepted";

/** Return the later word on a session: the page's, or that of whoever watches all of them. */
function newer(read: SessionView | null, watched: SessionView | undefined): SessionView | null {
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
