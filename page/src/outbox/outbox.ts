/** The outbox: messages stored in the browser until the journal shows them, and sent by one tab at a time. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { localStore, withTabLock } from "../browser.ts";
import { newKey } from "../bytes.ts";
import { backoffMs, waitToRetry } from "../retry.ts";
import { go, route, to } from "../router.ts";
import { me } from "../sign_in/identity.ts";
import { drain, type Outcome, transport } from "./delivery.ts";
import { accepted, isDue, isOwnedBy, type NewMessage, type Outgoing, queueOf } from "./message.ts";
import {
  clearWriteAhead,
  DatabaseStorage,
  FallbackStorage,
  isWriteAheadKey,
  ORPHANED_MS,
  ReopeningStorage,
  writeAhead,
  writeAheads,
} from "./storage.ts";

const NAME = "holdfast.outbox";
/** Who was signed in last: they own messages that are written while the gateway is away. */
const OWNER = "holdfast.owner";

const items = signal<readonly Outgoing[]>([]);
const sentHere = new Set<string>();
const working = new Set<string>();
const channel = new BroadcastChannel(NAME);
const persistent = signal(true);
const storage = new FallbackStorage(new ReopeningStorage(DatabaseStorage.open), () => {
  persistent.value = false;
});

let reading = Promise.resolve();
let latest = 0;

/** The outgoing messages, oldest first. */
export const outgoing: ReadonlySignal<readonly Outgoing[]> = computed(() =>
  items.value.filter((each) => isOwnedBy(each, me.value)),
);

/** False if the browser cannot store messages: they are sent while the page is open. */
export const isPersistent: ReadonlySignal<boolean> = persistent;

/** Start to send stored messages, of this page or an earlier one. */
export function startOutbox(): void {
  channel.onmessage = () => refresh();
  adoptOrphans();
  addEventListener("storage", ({ key, newValue }) => {
    if (isWriteAheadKey(key) && newValue !== null) setTimeout(adoptOrphans, ORPHANED_MS);
  });
  effect(() => {
    if (me.value) localStore.set(OWNER, me.value.owner);
    refresh();
  });
}

/** Store a message to be sent as soon as possible.  Returns its key once it is stored. */
export async function send(draft: NewMessage): Promise<string> {
  if (draft.sessionId === null && draft.opening === null)
    throw new Error("A message belongs to a session, or opens one.");
  // Messages of the same millisecond keep their order.
  latest = Math.max(Date.now(), latest + 1);
  const fresh = { state: "waiting", turnId: null, problem: "", reply: null } as const;
  const owner = me.peek()?.owner ?? localStore.get(OWNER);
  const item: Outgoing = { ...draft, ...fresh, owner, key: newKey(), at: latest };
  sentHere.add(item.key);
  await store(item);
  return item.key;
}

async function store(item: Outgoing): Promise<void> {
  writeAhead(item);
  try {
    await storage.change(item.key, (stored) => stored ?? item);
  } finally {
    clearWriteAhead(item.key);
  }
  await changed();
}

/** Adopt messages that a closed page left behind.  The key makes a message that was already sent the same one. */
async function adoptOrphans(): Promise<void> {
  for (const each of writeAheads()) await store(each).catch(() => undefined);
}

/** Send a refused message again. */
export async function resend(key: string): Promise<void> {
  await storage.change(key, (item) => item && { ...item, state: "waiting", problem: "" });
  await changed();
}

/** Delete a message. */
export async function discard(key: string): Promise<void> {
  await storage.change(key, () => null);
  await changed();
}

/** Report turns that the journal shows: their messages have arrived. */
export function markArrived(turns: readonly ArrivedTurn[]): void {
  turns.forEach(recordTurn);
  if (!items.peek().some(hasArrived)) return;
  // At once, not only after it is deleted from storage: until then it would be shown twice.
  items.value = items.peek().filter((each) => !hasArrived(each));
  refresh();
}

/** Tell all tabs that something changed. */
function changed(): Promise<void> {
  channel.postMessage(null);
  return refresh();
}

/** Read the storage and send what is due.  Reads run one after another, so that none overwrites a later one. */
function refresh(): Promise<void> {
  // The next read may succeed.
  reading = reading.then(readStorage).catch(() => undefined);
  return reading;
}

async function readStorage(): Promise<void> {
  const found = await storage.all();
  for (const each of found) if (each.arrived || hasArrived(each)) await settle(each);
  const before = new Set(items.peek().map((each) => each.key));
  // A message that another tab saw in the journal stays until this tab sees it too; a new page does not show it.
  const left = found.filter((each) => !hasArrived(each) && (!each.arrived || before.has(each.key)));
  followSession(items.peek(), found);
  items.value = left;
  for (const queue of new Set(left.filter(isDue).map(queueOf))) deliverQueue(queue);
}

/** Mark an arrived message as accepted, and delete it some time later. */
async function settle(item: Outgoing): Promise<void> {
  if (item.arrived) {
    if (isExpired(item)) await storage.change(item.key, () => null);
    return;
  }
  const receipt = { turn_id: turnOf(item) ?? item.turnId ?? "", session_id: "", reply: null };
  await storage.change(item.key, (stored) => stored && { ...accepted(stored, receipt), arrived: true });
  channel.postMessage(null);
}

/** Send what is due in a queue, for as long as that takes. */
async function deliverQueue(queue: string): Promise<void> {
  if (working.has(queue)) return;
  working.add(queue);
  for (let tries = 0; ; tries += 1) {
    const outcome = await withTabLock(`${NAME}.${queue}`, () => tryQueue(queue));
    if (outcome === "done") break;
    await waitToRetry(outcome.retryAfterMs ?? backoffMs(tries));
  }
  working.delete(queue);
  // Something may have been added at the last moment.
  refresh();
}

async function tryQueue(queue: string): Promise<Outcome> {
  try {
    return await drain(queue, storage, transport, changed);
  } catch {
    return { retryAfterMs: null };
  }
}

/** Go to the session that took a message of this page, if that is its successor. */
function followSession(before: readonly Outgoing[], now: readonly Outgoing[]): void {
  const here = route.peek();
  if (here.name !== "session") return;
  const sent = before.filter((each) => each.sessionId === here.id && sentHere.has(each.key)).map((each) => each.key);
  const moved = now.find((each) => sent.includes(each.key) && each.sessionId !== here.id)?.sessionId;
  if (moved) go(to.session(moved));
}

/** A message accepted this long ago is in its session, whether a tab has shown it or not. */
const STALE_MS = 3_600_000;
/** After this long, the other tabs have seen an accepted message in the journal too. */
const KEEP_ACCEPTED_MS = 60_000;
/** Recent turns to remember: a journal can be faster than a receipt. */
const TURNS_MAX = 1_000;

/** A turn that the journal shows, with the key of its message. */
interface ArrivedTurn {
  id: string;
  key: string;
}

/** The turns, by their ids and by the keys of their messages. */
const arrivedTurns = new Map<string, string>();

export function recordTurn({ id, key }: ArrivedTurn): void {
  for (const name of key ? [id, key] : [id]) {
    arrivedTurns.delete(name);
    arrivedTurns.set(name, id);
  }
  while (arrivedTurns.size > 2 * TURNS_MAX) arrivedTurns.delete(arrivedTurns.keys().next().value!);
}

/** Return the turn of a message, if the journal shows it. */
const turnOf = ({ key }: Outgoing) => arrivedTurns.get(key);

/** Whether a message is visible in its session: the journal proves it as well as a receipt, and is often faster. */
export function hasArrived(item: Outgoing): boolean {
  const { key, state, turnId, reply } = item;
  if (arrivedTurns.has(key)) return true;
  if (state !== "accepted") return false;
  return age(item) > STALE_MS || (reply === null && (turnId === null || arrivedTurns.has(turnId)));
}

/** Whether no tab needs an arrived message any longer: each shows it until its own journal does. */
export const isExpired = (item: Outgoing) => age(item) > KEEP_ACCEPTED_MS;

const age = ({ acceptedAt, at }: Outgoing) => Date.now() - (acceptedAt ?? at);
