import { expect, test } from "vitest";
import type { Outgoing } from "../../src/outbox/message.ts";
import { LastingStorage, MemoryStorage, type Storage } from "../../src/outbox/storage.ts";

const message = { key: "a", at: 1, text: "hello" } as Outgoing;

/** Is closed before it is first used, as a browser closes a database whose data are thrown away. */
class ClosedStorage implements Storage {
  all = () => Promise.reject(new Error("closed"));
  change = () => Promise.reject(new Error("closed"));
}

test("a message is kept although the browser has closed its database", async () => {
  const opened: Storage[] = [new ClosedStorage(), new MemoryStorage()];
  const storage = new LastingStorage(async () => opened.shift()!);
  await storage.change("a", () => message);
  expect(await storage.all()).toEqual([message]);
  expect(opened).toEqual([]);
});

test("what cannot be kept in a new one either is told", async () => {
  const storage = new LastingStorage(async () => new ClosedStorage());
  await expect(storage.change("a", () => message)).rejects.toThrow("closed");
});
