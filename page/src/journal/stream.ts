/** Event streams: server-sent events parsed from bytes, followed through every loss of the connection. */

import { Refused, refusedFrom } from "../api.ts";
import type { ConnectionState } from "../connection.ts";
import { backoffMs, isTransient, retryNow, waitToRetry } from "../retry.ts";
import { signedFetch } from "../signing.ts";

/** A tab hidden for longer frees its connection: a browser has six per gateway. */
const HIDDEN_MS = 10_000;

interface Listener {
  onEvent(event: ServerEvent): void;
  onConnection(link: ConnectionState): void;
  /** The gateway refuses the stream for good. */
  onRefused?(refused: Refused): void;
}

/** Requests a stream; throws if no answer comes. */
export type FetchStream = (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

const fetchStream: FetchStream = (path, headers, signal) => signedFetch(path, { cache: "no-store", headers, signal });

/**
 * Follow a stream.  With a cursor it resumes after it, and pauses while the tab is hidden.  Returns the function that
 * stops it.
 */
export function followStream(
  path: string,
  cursor: (() => number) | null,
  listener: Listener,
  ask = fetchStream,
): () => void {
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
    readonly ask: FetchStream,
  ) {}

  stop(): void {
    this.#stopped.abort();
  }

  async run(): Promise<void> {
    this.listener.onConnection("connecting");
    for (let tries = 0; !this.#stopped.signal.aborted; tries += 1) {
      if (this.cursor) await whenVisible(this.#stopped.signal);
      const outcome = await this.#listen();
      if (this.#stopped.signal.aborted) return;
      if (outcome === "heard") tries = 0;
      // A connection that just broke is retried once before it counts as away.
      this.listener.onConnection(outcome === "heard" ? "connecting" : "away");
      if (outcome instanceof Refused) return this.listener.onRefused?.(outcome);
      await waitToRetry(backoffMs(tries));
    }
  }

  /** Listen until the connection is lost. */
  async #listen(): Promise<"heard" | "unheard" | Refused> {
    const connection = new WatchedConnection(this.#stopped.signal);
    const last: Record<string, string> = this.cursor ? { "Last-Event-ID": String(this.cursor()) } : {};
    const stopWatching = this.cursor ? disconnectWhenHidden(connection) : undefined;
    try {
      const response = await this.ask(this.path, last, connection.signal).catch(() => null);
      if (!response?.ok || !response.body) return await refusalOf(response);
      connection.touch();
      this.listener.onConnection("live");
      // If one request is answered, the others will be too.
      retryNow();
      await this.#readBody(response.body, connection);
      return "heard";
    } finally {
      stopWatching?.();
      connection.cut();
    }
  }

  async #readBody(body: ReadableStream<Uint8Array>, connection: WatchedConnection): Promise<void> {
    const parse = eventParser((event) => this.#emit(event));
    const reader = body.getReader();
    for (;;) {
      // However the connection broke, the next one resumes after the last event that was handled.
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || !value) return;
      connection.touch();
      parse(value);
    }
  }

  #emit(event: ServerEvent): void {
    if (this.#stopped.signal.aborted) return;
    try {
      this.listener.onEvent(event);
    } catch (error) {
      // If this threw, the stream would stop, and the page would show old state as current.
      console.error(error);
    }
  }
}

async function refusalOf(response: Response | null): Promise<"unheard" | Refused> {
  if (!response || response.ok) return "unheard";
  const refused = refusedFrom(response.status, await response.json().catch(() => null));
  return isTransient(refused.status) ? "unheard" : refused;
}

/** Disconnect when the tab has been hidden for a while.  Returns the function that stops watching. */
function disconnectWhenHidden(connection: WatchedConnection): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const update = () => {
    clearTimeout(timer);
    timer = document.hidden ? setTimeout(connection.cut, HIDDEN_MS) : undefined;
  };
  document.addEventListener("visibilitychange", update);
  update();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", update);
  };
}

function whenVisible(stopped: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  const done = new AbortController();
  const signal = AbortSignal.any([stopped, done.signal]);
  document.addEventListener("visibilitychange", () => document.hidden || done.abort(), { signal });
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** The longest that a gateway may take to answer at all. */
const ANSWER_MAX_MS = 10_000;
/** The gateway sends a heartbeat every 15 seconds; after this long without one, it is gone. */
const SILENCE_MAX_MS = 40_000;
const CHECK_MS = 2_000;

export class WatchedConnection {
  readonly #cut = new AbortController();
  readonly #watch: ReturnType<typeof setInterval>;
  #heardAt = Date.now();
  #silenceMs = ANSWER_MAX_MS;

  constructor(stopped: AbortSignal) {
    // By wall-clock time, because timers stop while a machine sleeps; the absolute value, because the clock may be set back.
    this.#watch = setInterval(() => Math.abs(Date.now() - this.#heardAt) > this.#silenceMs && this.cut(), CHECK_MS);
    // The network may come back as another one, and a new request costs nothing.
    addEventListener("offline", this.cut);
    stopped.addEventListener("abort", this.cut, { signal: this.#cut.signal });
  }

  /** Aborts with the connection. */
  get signal(): AbortSignal {
    return this.#cut.signal;
  }

  touch(): void {
    this.#heardAt = Date.now();
    this.#silenceMs = SILENCE_MAX_MS;
  }

  readonly cut = (): void => {
    clearInterval(this.#watch);
    removeEventListener("offline", this.cut);
    this.#cut.abort();
  };
}

/** One event; without a name it is a "message". */
export interface ServerEvent {
  event: string;
  id: string;
  data: string;
}

/** Return a parser that takes chunks and reports each event as soon as it is complete. */
export function eventParser(onEvent: (event: ServerEvent) => void): (chunk: Uint8Array) => void {
  const decoder = new TextDecoder();
  const parse = lineParser(onEvent);
  let rest = "";
  let endedInReturn = false;
  return (chunk) => {
    let text = decoder.decode(chunk, { stream: true });
    if (!text) return;
    // The carriage return before already ended the line; this is the second half of it.
    if (endedInReturn && text.startsWith("\n")) text = text.slice(1);
    endedInReturn = text ? text.endsWith("\r") : false;
    const complete = (rest + text).split(/\r\n|\r|\n/);
    rest = complete.pop() ?? "";
    complete.forEach(parse);
  };
}

/** Return a parser that takes one line at a time. */
function lineParser(onEvent: (event: ServerEvent) => void): (line: string) => void {
  let id = "";
  let event = "";
  let data: string[] = [];
  return (line) => {
    if (line === "") {
      if (data.length) onEvent({ event: event || "message", id, data: data.join("\n") });
      event = "";
      data = [];
      return;
    }
    const { name, value } = field(line);
    if (name === "data") data.push(value);
    else if (name === "event") event = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  };
}

/** A line without a name is a comment, sent as a heartbeat. */
function field(line: string): { name: string; value: string } {
  const colon = line.indexOf(":");
  if (colon < 0) return { name: line, value: "" };
  const value = line.slice(colon + 1);
  return { name: line.slice(0, colon), value: value.startsWith(" ") ? value.slice(1) : value };
}
