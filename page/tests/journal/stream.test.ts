// @vitest-environment happy-dom

import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SIGNED_OUT } from "../../src/api.ts";
import {
  eventParser,
  type FetchStream,
  followStream,
  type ServerEvent,
  WatchedConnection,
} from "../../src/journal/stream.ts";
import { retryNow } from "../../src/retry.ts";

const SOON_MS = 500;
const HEARTBEAT_MS = 15_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A gateway that sends what the test says, and records its requests. */
class Gateway {
  readonly asked: (string | undefined)[] = [];
  readonly lines: { send: (text: string) => void; lose: () => void; signal: AbortSignal }[] = [];
  /** The answer instead of a stream; null is no answer. */
  answers: (Response | null)[] = [];

  readonly ask: FetchStream = async (_, headers, signal) => {
    this.asked.push(headers["Last-Event-ID"]);
    const answer = this.answers.shift();
    if (answer === null) throw new TypeError("nobody there");
    return answer ?? this.#stream(signal);
  };

  #stream(signal: AbortSignal): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const send = (text: string) => controller.enqueue(new TextEncoder().encode(text));
        this.lines.push({ send, lose: () => controller.error(new TypeError("lost")), signal });
        signal.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body);
  }
}

/** Follow a gateway as a session does, and return what arrived. */
function following(gateway: Gateway, hasCursor = true) {
  const told = { events: [] as string[], links: [] as string[], refused: [] as number[] };
  const stop = followStream(
    "/api/sessions/s/events",
    hasCursor ? () => told.events.length : null,
    {
      onEvent: ({ data }) => told.events.push(data),
      onConnection: (link) => told.links.push(link),
      onRefused: ({ status }) => told.refused.push(status),
    },
    gateway.ask,
  );
  return { ...told, stop };
}

const passing = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const refusal = (status: number) => Response.json({ error: { code: "x", message: "no" } }, { status });

test("a broken stream resumes after the last event", async () => {
  const gateway = new Gateway();
  const { events, links, stop } = following(gateway);
  await passing();
  gateway.lines[0]!.send("id: 1\ndata: one\n\nid: 2\ndata: two\n\nid: 3\ndata: thr");
  await passing();
  gateway.lines[0]!.lose();
  await passing(SOON_MS);
  gateway.lines[1]!.send("id: 3\ndata: three\n\n");
  await passing();
  expect([events, gateway.asked]).toEqual([
    ["one", "two", "three"],
    ["0", "2"],
  ]);
  expect(links).toEqual(["connecting", "live", "connecting", "live"]);
  stop();
});

test("a silent connection is dropped, and a quiet one with heartbeats is kept", async () => {
  const gateway = new Gateway();
  const { stop } = following(gateway);
  for (let beats = 0; beats < 10; beats += 1) {
    await passing(HEARTBEAT_MS);
    gateway.lines[0]!.send(": still here\n\n");
  }
  expect(gateway.lines[0]!.signal.aborted).toBe(false);
  await passing(3 * HEARTBEAT_MS);
  expect(gateway.lines[0]!.signal.aborted).toBe(true);
  expect(gateway.asked).toHaveLength(2);
  stop();
});

test("retries back off while no answer comes, and happen at once when the network is back", async () => {
  const gateway = new Gateway();
  gateway.answers = Array.from({ length: 50 }, () => null);
  const { links, stop } = following(gateway);
  await passing(60_000);
  expect(links.slice(0, 2)).toEqual(["connecting", "away"]);
  expect(gateway.asked.length).toBeGreaterThan(6);
  expect(gateway.asked.length).toBeLessThan(20);
  gateway.answers = [];
  retryNow();
  await passing();
  expect(links.at(-1)).toBe("live");
  stop();
});

test("transient errors are retried, and a 401 reports the sign-out", async () => {
  const gateway = new Gateway();
  gateway.answers = [refusal(503), refusal(401)];
  const signedOut = vi.fn();
  addEventListener(SIGNED_OUT, signedOut);
  const { links, stop } = following(gateway);
  await passing(10_000);
  expect([links.at(-1), gateway.asked.length, signedOut.mock.calls.length]).toEqual(["live", 3, 1]);
  stop();
});

test("a missing stream is not retried", async () => {
  const gateway = new Gateway();
  gateway.answers = [refusal(404)];
  const { refused } = following(gateway);
  await passing(60_000);
  expect([refused, gateway.asked.length]).toEqual([[404], 1]);
});

test("a hidden tab frees its connection until it is visible again", async () => {
  const gateway = new Gateway();
  const { stop } = following(gateway);
  await passing();
  const look = (hidden: boolean) => {
    Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  look(true);
  await passing(60_000);
  expect([gateway.lines[0]!.signal.aborted, gateway.asked.length]).toEqual([true, 1]);
  look(false);
  await passing(SOON_MS);
  expect(gateway.asked).toHaveLength(2);
  stop();
});

test("no event arrives after the stream was stopped", async () => {
  const gateway = new Gateway();
  const { events, stop } = following(gateway);
  await passing();
  gateway.lines[0]!.send("data: one\n\n");
  stop();
  await passing(60_000);
  expect([events, gateway.asked.length, gateway.lines[0]!.signal.aborted]).toEqual([[], 1, true]);
});

test("an exception in a listener does not end the stream", async () => {
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  const gateway = new Gateway();
  const heard: string[] = [];
  const onEvent = ({ data }: { data: string }) => {
    if (data === "odd") throw new Error("no room");
    heard.push(data);
  };
  const stop = followStream("/api/events", null, { onEvent, onConnection: () => {} }, gateway.ask);
  await passing();
  gateway.lines[0]!.send("data: odd\n\ndata: even\n\n");
  await passing();
  expect(heard).toEqual(["even"]);
  expect(complaints).toHaveBeenCalledOnce();
  complaints.mockRestore();
  stop();
});

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a silent connection is dropped even if the clock was set back", () => {
  const line = new WatchedConnection(new AbortController().signal);
  line.touch();
  vi.setSystemTime(Date.now() - 3_600_000);
  vi.advanceTimersByTime(60_000);
  expect(line.signal.aborted).toBe(true);
});

const line = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n\0]/g, ""));
const event = fc.record({
  name: fc.constantFrom("", "session", "reset"),
  id: fc.nat(99),
  data: fc.array(line, { minLength: 1 }),
});
const ending = fc.constantFrom("\n", "\r\n", "\r");

function written(events: readonly { name: string; id: number; data: string[] }[], end: string): string {
  const lines = events.flatMap(({ name, id, data }) => [
    ": still here",
    "retry: 1000",
    ...(name ? [`event: ${name}`] : []),
    ...data.map((each, index) => (index % 2 ? `data:${each.startsWith(" ") ? " " : ""}${each}` : `data: ${each}`)),
    `id: ${id}`,
    "",
  ]);
  return lines.map((each) => each + end).join("");
}

function heardIn(bytes: Uint8Array, cuts: readonly number[]): ServerEvent[] {
  const heard: ServerEvent[] = [];
  const take = eventParser((each) => heard.push(each));
  const places = [0, ...cuts.map((each) => each % (bytes.length + 1)).sort((one, other) => one - other), bytes.length];
  for (const [index, from] of places.entries()) take(bytes.subarray(from, places[index + 1] ?? bytes.length));
  return heard;
}

test("events are the same wherever their bytes are cut, even within a character", () => {
  fc.assert(
    fc.property(fc.array(event), ending, fc.array(fc.nat(5_000)), (events, end, cuts) => {
      const bytes = new TextEncoder().encode(written(events, end));
      expect(heardIn(bytes, cuts)).toEqual(
        events.map(({ name, id, data }) => ({ event: name || "message", id: String(id), data: data.join("\n") })),
      );
    }),
  );
});

test("every byte may arrive alone", () => {
  const bytes = new TextEncoder().encode("id: 7\r\ndata: né 🙂\r\ndata: two\r\n\r\n");
  expect(heardIn(bytes, [...bytes.keys()])).toEqual([{ event: "message", id: "7", data: "né 🙂\ntwo" }]);
});

test("an event without data or without an end is none", () => {
  expect(heardIn(new TextEncoder().encode("event: session\n\nid: 1\n\n: hi\n\ndata: half"), [])).toEqual([]);
});
