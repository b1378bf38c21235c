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

/** A database that is closed before its first use, as browsers do when they delete its data. */
class ClosedStorage implements MessageStorage {
  all = () => Promise.reject(new Error("closed"));
  change = () => Promise.reject(new Error("closed"));
}

test("a message is stored although the browser closed the database", async () => {
  const opened: MessageStorage[] = [new ClosedStorage(), new MemoryStorage()];
  const storage = new ReopeningStorage(async () => opened.shift()!);
  await storage.change("a", () => message);
  expect(await storage.all()).toEqual([message]);
  expect(opened).toEqual([]);
});

test("a message that a new database does not take either is reported", async () => {
  const storage = new ReopeningStorage(async () => new ClosedStorage());
  await expect(storage.change("a", () => message)).rejects.toThrow("closed");
});

/** A storage without room for more. */
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

test("a message without room stays in memory, and that is reported", async () => {
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

test("without any storage, messages stay in memory", async () => {
  const storage = new FallbackStorage(new ClosedStorage(), () => {});
  await storage.change("a", () => message);
  expect(await storage.all()).toEqual([message]);
});
