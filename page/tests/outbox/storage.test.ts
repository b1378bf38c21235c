import { expect, test } from "vitest";
import type { Outgoing } from "../../src/outbox/message.ts";
import {
  type Change,
  FallbackStorage,
  MemoryStorage,
  type MessageStorage,
  ReopeningStorage,
} from "../../src/outbox/storage.ts";

const message = { key: "a", at: 1, text: "hello" } as Outgoing;

/** Is closed before it is first used, as a browser closes a database whose data are thrown away. */
class ClosedStorage implements MessageStorage {
  all = () => Promise.reject(new Error("closed"));
  change = () => Promise.reject(new Error("closed"));
}

test("a message is kept although the browser has closed its database", async () => {
  const opened: MessageStorage[] = [new ClosedStorage(), new MemoryStorage()];
  const storage = new ReopeningStorage(async () => opened.shift()!);
  await storage.change("a", () => message);
  expect(await storage.all()).toEqual([message]);
  expect(opened).toEqual([]);
});

test("what cannot be kept in a new one either is told", async () => {
  const storage = new ReopeningStorage(async () => new ClosedStorage());
  await expect(storage.change("a", () => message)).rejects.toThrow("closed");
});

/** Has what it had, and no room for more. */
class FullStorage extends MemoryStorage {
  isFull = false;

  override change(key: string, change: Change): Promise<Outgoing | null> {
    return super.change(key, (item) => {
      const changed = change(item);
      if (this.isFull && changed) throw new Error("full");
      return changed;
    });
  }
}

test("what there is no room for is held while the page is open, and said to be", async () => {
  let losses = 0;
  const full = new FullStorage();
  const storage = new FallbackStorage(full, () => {
    losses += 1;
  });
  await storage.change("a", () => message);
  full.isFull = true;
  expect(losses).toBe(0);
  await storage.change("b", () => ({ ...message, key: "b", at: 2 }));
  await storage.change("a", (item) => item && { ...item, state: "sending" });
  expect(losses).toBe(2);
  expect(await storage.all()).toEqual([
    { ...message, state: "sending" },
    { ...message, key: "b", at: 2 },
  ]);
  await storage.change("a", () => null);
  await storage.change("b", () => null);
  expect(await storage.all()).toEqual([]);
  expect(await full.all()).toEqual([]);
});

test("where nothing can be kept at all, messages are held as well", async () => {
  const storage = new FallbackStorage(new ClosedStorage(), () => {});
  await storage.change("a", () => message);
  expect(await storage.all()).toEqual([message]);
});
