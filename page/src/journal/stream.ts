/** Following a stream of events for as long as somebody wants it, through every loss of the connection. */

import { Refused, refusal } from "../api.ts";
import type { Link } from "../connection.ts";
import { mayPass, patience, pause, wake } from "../patience.ts";
import { signedFetch } from "../signing.ts";
import { Line } from "./line.ts";
import { type Heard, hearing } from "./sse.ts";

/** So long a tab may be hidden before it leaves its connection to others: a browser has six for one gateway. */
const HIDDEN_MS = 10_000;

export interface Listener {
  onEvent(heard: Heard): void;
  onLink(link: Link): void;
  /** It will never be given: there is nothing to follow, or not for this person. */
  onRefused?(refused: Refused): void;
}

/** Asks for a stream; throws when nobody answers. */
export type Ask = (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

const asked: Ask = (path, headers, signal) => signedFetch(path, { cache: "no-store", headers, signal });

/** Follow a stream; one with a cursor goes on behind it, and rests while nobody looks.  Returns what ends it. */
export function follow(path: string, cursor: (() => number) | null, listener: Listener, ask = asked): () => void {
  const stream = new Stream(path, cursor, listener, ask);
  stream.run();
  return () => stream.stop();
}

class Stream {
  readonly #stopped = new AbortController();

  constructor(
    readonly path: string,
    readonly cursor: (() => number) | null,
    readonly listener: Listener,
    readonly ask: Ask,
  ) {}

  stop(): void {
    this.#stopped.abort();
  }

  async run(): Promise<void> {
    this.listener.onLink("connecting");
    for (let tries = 0; !this.#stopped.signal.aborted; tries += 1) {
      if (this.cursor) await whenShown(this.#stopped.signal);
      const outcome = await this.#listen();
      if (this.#stopped.signal.aborted) return;
      if (outcome === "heard") tries = 0;
      // One that has just broken is asked for once more before anybody is told that it is gone.
      this.listener.onLink(outcome === "heard" ? "connecting" : "away");
      if (outcome instanceof Refused) return this.listener.onRefused?.(outcome);
      await pause(patience(tries));
    }
  }

  /** Listen until the connection is lost. */
  async #listen(): Promise<"heard" | "unheard" | Refused> {
    const line = new Line(this.#stopped.signal);
    const last: Record<string, string> = this.cursor ? { "Last-Event-ID": String(this.cursor()) } : {};
    const restless = this.cursor ? cutWhenHidden(line) : undefined;
    try {
      const response = await this.ask(this.path, last, line.signal).catch(() => null);
      if (!response?.ok || !response.body) return await judged(response);
      line.heard();
      this.listener.onLink("live");
      // A gateway that answers one answers all.
      wake();
      await this.#take(response.body, line);
      return "heard";
    } finally {
      restless?.();
      line.cut();
    }
  }

  async #take(body: ReadableStream<Uint8Array>, line: Line): Promise<void> {
    const hear = hearing((heard) => this.#tell(heard));
    const reader = body.getReader();
    for (;;) {
      // Whatever broke the connection, the next one begins behind the last event that was taken.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || !value) return;
      line.heard();
      hear(value);
    }
  }

  #tell(heard: Heard): void {
    if (this.#stopped.signal.aborted) return;
    try {
      this.listener.onEvent(heard);
    } catch (error) {
      // The page would go on to show what was, and say that it is what is.
      console.error(error);
    }
  }
}

async function judged(response: Response | null): Promise<"unheard" | Refused> {
  if (!response || response.ok) return "unheard";
  const refused = refusal(response.status, await response.json().catch(() => null));
  return mayPass(refused.status) ? "unheard" : refused;
}

/** Cut a line when the tab has been hidden for a while.  Returns what ends that. */
function cutWhenHidden(line: Line): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(timer);
    timer = document.hidden ? setTimeout(line.cut, HIDDEN_MS) : undefined;
  };
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", look);
  };
}

function whenShown(stopped: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  const done = new AbortController();
  const signal = AbortSignal.any([stopped, done.signal]);
  document.addEventListener("visibilitychange", () => document.hidden || done.abort(), { signal });
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
