import fc from "fast-check";
import { expect, test } from "vitest";
import { type Heard, hearing } from "../../src/journal/sse.ts";

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

function heardIn(bytes: Uint8Array, cuts: readonly number[]): Heard[] {
  const heard: Heard[] = [];
  const take = hearing((each) => heard.push(each));
  const places = [0, ...cuts.map((each) => each % (bytes.length + 1)).sort((one, other) => one - other), bytes.length];
  for (const [index, from] of places.entries()) take(bytes.subarray(from, places[index + 1] ?? bytes.length));
  return heard;
}

test("events are the same wherever their bytes are cut, within a letter too", () => {
  fc.assert(
    fc.property(fc.array(event), ending, fc.array(fc.nat(5_000)), (events, end, cuts) => {
      const bytes = new TextEncoder().encode(written(events, end));
      expect(heardIn(bytes, cuts)).toEqual(
        events.map(({ name, id, data }) => ({ event: name || "message", id: String(id), data: data.join("\n") })),
      );
    }),
  );
});

test("every byte may come alone", () => {
  const bytes = new TextEncoder().encode("id: 7\r\ndata: né 🙂\r\ndata: two\r\n\r\n");
  expect(heardIn(bytes, [...bytes.keys()])).toEqual([{ event: "message", id: "7", data: "né 🙂\ntwo" }]);
});

test("what has no data and what is not whole is no event", () => {
  expect(heardIn(new TextEncoder().encode("event: session\n\nid: 1\n\n: hi\n\ndata: half"), [])).toEqual([]);
});
