/** Where outgoing messages are stored until the journal shows them: across reloads, and for all tabs. */

import { localStore } from "../browser.ts";
import type { Outgoing } from "./message.ts";

export interface MessageStorage {
  /** Return all messages, oldest first. */
  all(): Promise<Outgoing[]>;
  /** Change one message atomically, and return it once that is durable; null deletes it. */
  change(key: string, change: Change): Promise<Outgoing | null>;
}

export type Change = (item: Outgoing | null) => Outgoing | null;

const byAge = (one: Outgoing, other: Outgoing) => one.at - other.at || (one.key < other.key ? -1 : 1);

/** In memory, where the browser stores nothing. */
export class MemoryStorage implements MessageStorage {
  readonly #items = new Map<string, Outgoing>();

  async all(): Promise<Outgoing[]> {
    return [...this.#items.values()].sort(byAge);
  }

  async change(key: string, change: Change): Promise<Outgoing | null> {
    const changed = change(this.#items.get(key) ?? null);
    if (changed) this.#items.set(key, changed);
    else this.#items.delete(key);
    return changed;
  }
}

/** Reopens a database that the browser has closed or deleted. */
export class ReopeningStorage implements MessageStorage {
  #opened: Promise<MessageStorage> | null = null;

  constructor(readonly open: () => Promise<MessageStorage>) {}

  all(): Promise<Outgoing[]> {
    return this.#use((storage) => storage.all());
  }

  change(key: string, change: Change): Promise<Outgoing | null> {
    return this.#use((storage) => storage.change(key, change));
  }

  async #use<T>(action: (storage: MessageStorage) => Promise<T>): Promise<T> {
    this.#opened ??= this.open();
    const opened = this.#opened;
    try {
      return await action(await opened);
    } catch {
      if (this.#opened === opened) this.#opened = this.open();
      return action(await this.#opened!);
    }
  }
}

/** Keeps in memory what a storage does not accept. */
export class FallbackStorage implements MessageStorage {
  readonly #spare = new MemoryStorage();

  constructor(
    readonly storage: MessageStorage,
    /** Called when a message could not be stored. */
    readonly onLoss: () => void,
  ) {}

  async all(): Promise<Outgoing[]> {
    const held = await this.#spare.all();
    const stored = await this.#stored();
    return [...stored.filter((each) => !held.some(({ key }) => key === each.key)), ...held].sort(byAge);
  }

  async change(key: string, change: Change): Promise<Outgoing | null> {
    const held = (await this.#spare.all()).some((each) => each.key === key);
    try {
      if (!held) return await this.storage.change(key, change);
    } catch {
      this.onLoss();
    }
    return this.#hold(key, change);
  }

  async #hold(key: string, change: Change): Promise<Outgoing | null> {
    const stored = (await this.#stored()).find((each) => each.key === key) ?? null;
    const held = await this.#spare.change(key, (before) => change(before ?? stored));
    // Deleting always works.
    if (!held && stored) await this.storage.change(key, () => null).catch(() => null);
    return held;
  }

  async #stored(): Promise<Outgoing[]> {
    try {
      return await this.storage.all();
    } catch {
      this.onLoss();
      return [];
    }
  }
}

const DATABASE = "holdfast";
const VERSION = 1;
const MESSAGES = "outbox";

/** In IndexedDB. */
export class DatabaseStorage implements MessageStorage {
  private constructor(readonly database: IDBDatabase) {}

  /** Open the database; throws if the browser has none for this page. */
  static async open(): Promise<DatabaseStorage> {
    const opening = indexedDB.open(DATABASE, VERSION);
    opening.onupgradeneeded = () => opening.result.createObjectStore(MESSAGES, { keyPath: "key" });
    const database = await result(opening);
    // So that a later version of this page can upgrade the database.
    database.onversionchange = () => database.close();
    return new DatabaseStorage(database);
  }

  async all(): Promise<Outgoing[]> {
    const found: Outgoing[] = await result(this.database.transaction(MESSAGES).objectStore(MESSAGES).getAll());
    return found.sort(byAge);
  }

  async change(key: string, change: Change): Promise<Outgoing | null> {
    const transaction = this.database.transaction(MESSAGES, "readwrite", { durability: "strict" });
    const messages = transaction.objectStore(MESSAGES);
    const reading: IDBRequest<Outgoing | undefined> = messages.get(key);
    let changed: Outgoing | null = null;
    reading.onsuccess = () => {
      changed = change(reading.result ?? null);
      if (changed) messages.put(changed);
      else messages.delete(key);
    };
    await committed(transaction);
    return changed;
  }
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function committed(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });
}

const WRITE_AHEAD_PREFIX = "holdfast.leaving.";
/** A tab that is still open has stored its message by then. */
export const ORPHANED_MS = 5_000;

export const writeAhead = (item: Outgoing) => localStore.set(WRITE_AHEAD_PREFIX + item.key, JSON.stringify(item));

export const clearWriteAhead = (key: string) => localStore.remove(WRITE_AHEAD_PREFIX + key);

/** Return the messages that were written ahead, by this page or another, oldest first. */
export function writeAheads(): Outgoing[] {
  const found = localStore.names(WRITE_AHEAD_PREFIX).flatMap((name) => parseMessage(localStore.get(name)));
  return found.sort((one, other) => one.at - other.at);
}

export const isWriteAheadKey = (name: string | null) => name?.startsWith(WRITE_AHEAD_PREFIX) ?? false;

function parseMessage(text: string | null): Outgoing[] {
  try {
    const found: Outgoing | null = JSON.parse(text ?? "null");
    return found?.key ? [found] : [];
  } catch {
    return [];
  }
}
