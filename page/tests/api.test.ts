// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { get, Unanswered } from "../src/api.ts";
import { checkAccess, me } from "../src/sign_in/identity.ts";

let asked: string[] = [];

/** Answer every request with these bytes, and lose the line behind them. */
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

test("an answer that breaks off is none", async () => {
  breakOffAfter('{"items": [');
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("an answer that breaks off within its head, of which browsers make an empty one, is none", async () => {
  globalThis.fetch = async () => new Response("", { status: 202 });
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("an answer of somebody else, as networks give it that want money first, is none", async () => {
  globalThis.fetch = async () => new Response("<h1>Welcome to the train</h1>");
  await expect(get("/api/sessions")).rejects.toBeInstanceOf(Unanswered);
});

test("nobody is signed out because an answer broke off", async () => {
  breakOffAfter('{"owner": "ada"');
  await checkAccess();
  expect(asked).toEqual(["/api/me"]);
  expect(me.value).toBeNull();
});
