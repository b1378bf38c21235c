// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { get, Unanswered } from "../src/api.ts";
import { checkAccess, me } from "../src/sign_in/identity.ts";

let asked: string[] = [];

/** Answer every request with these bytes, then break the connection. */
function breakOffAfter(said: string): void {
  asked = [];
  globalThis.fetch = async (path) => {
    asked.push(String(path));
    const body = new ReadableStream<Uint8Array>({
      start: (answer) => answer.enqueue(new TextEncoder().encode(said)),
      pull: (answer) => answer.error(new TypeError("network error")),
    });
    return new Response(body, { headers: { "Content-Type": "application/json" } });
  };
}

test("a truncated answer counts as no answer", async () => {
  breakOffAfter('{"items": [');
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("an answer truncated in its headers, which browsers turn into an empty one, counts as no answer", async () => {
  globalThis.fetch = async () => new Response("", { status: 202 });
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("the answer of a captive portal counts as no answer", async () => {
  globalThis.fetch = async () => new Response("<h1>Welcome to the train</h1>");
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("a truncated answer signs no one out", async () => {
  breakOffAfter('{"owner": "ada"');
  await checkAccess();
  expect(asked).toEqual(["/api/me"]);
  expect(me.value).toBeNull();
});
