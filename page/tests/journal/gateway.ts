/** A gateway behind `fetch`: one session with a journal in pages and live, and connections that break. */

import { type JournalEntry, numberField } from "../../src/journal/entries.ts";
import { pageOf } from "./journals.ts";

const COUNTED = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_micros: 0 };

export class Gateway {
  entries: JournalEntry[] = [];
  /** The next answers to journal requests, instead of the real ones. */
  refusals: number[] = [];
  readonly asked: string[] = [];
  readonly #lines = new Set<ReadableStreamDefaultController<Uint8Array>>();

  readonly fetch = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(String(input), "http://gateway");
    this.asked.push(url.pathname + url.search);
    if (url.pathname.endsWith("/events")) return this.#follow(Number(new Headers(init?.headers).get("Last-Event-ID")));
    const status = this.refusals.shift();
    if (status) return Response.json({ error: { code: "no", message: "no" } }, { status });
    if (url.pathname.endsWith("/journal")) return Response.json(this.#page(url.searchParams));
    return Response.json({ items: [] });
  };

  /** Append to the journal. */
  happen(entries: readonly JournalEntry[]): void {
    this.entries.push(...entries);
    for (const line of this.#lines) for (const each of entries) line.enqueue(event(each));
  }

  /** Break all connections in the middle of an event. */
  cut(): void {
    for (const line of this.#lines) {
      line.enqueue(new TextEncoder().encode('id: 99\ndata: {"seq'));
      line.error(new TypeError("lost"));
    }
    this.#lines.clear();
  }

  #page(parameters: URLSearchParams) {
    const ids = this.entries.filter((each) => each.kind === "turn.accepted").map((each) => each.turn_id);
    const end = Number(parameters.get("cursor") ?? ids.length);
    const begin = Math.max(0, end - Math.min(Number(parameters.get("turns")), 1));
    const seq = this.entries.length;
    const spent = this.entries.reduce((sum, each) => sum + numberField(each, "input_tokens"), 0);
    return {
      session: { id: "s", seq, updated_at: seq },
      entries: pageOf(this.entries, new Set(ids.slice(begin, end)), seq),
      seq,
      used: { model: "m", ...COUNTED, input_tokens: spent },
      next_cursor: begin > 0 ? String(begin) : null,
    };
  }

  #follow(cursor: number): Response {
    const start = (line: ReadableStreamDefaultController<Uint8Array>) => {
      this.#lines.add(line);
      const isBeyond = cursor > this.entries.length;
      if (isBeyond) line.enqueue(new TextEncoder().encode("event: reset\ndata: {}\n\n"));
      for (const each of this.entries.slice(isBeyond ? 0 : cursor)) line.enqueue(event(each));
    };
    return new Response(new ReadableStream({ start }));
  }
}

const event = (entry: JournalEntry) => new TextEncoder().encode(`id: ${entry.seq}\ndata: ${JSON.stringify(entry)}\n\n`);
