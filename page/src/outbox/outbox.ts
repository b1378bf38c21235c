/** The outbox: messages stored in the browser until the journal shows them, and sent by one tab at a time. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { alone, pocket } from "../browser.ts";
import { newKey } from "../bytes.ts";
import { patience, pause } from "../retry.ts";
import { go, place, to } from "../router.ts";
import { me } from "../sign_in/identity.ts";
import { drain, type Outcome, transport } from "./delivery.ts";
import { accepted, type Draft, isDue, isOurs, laneOf, type Outgoing } from "./message.ts";
import {
  BackedStorage,
  BrowserStorage,
  crossOut,
  isWrittenDown,
  LastingStorage,
  LEFT_BEHIND_MS,
  writeDown,
  writtenDown,
} from "./storage.ts";

const NAME = "holdfast.outbox";
/** Who was signed in here last: a message that is written while the gateway is away is theirs. */
const OWNER = "holdfast.owner";

const items = signal<readonly Outgoing[]>([]);
const own = new Set<string>();
const working = new Set<string>();
const channel = new BroadcastChannel(NAME);
const keeps = signal(true);
const storage = new BackedStorage(new LastingStorage(BrowserStorage.open), () => {
  keeps.value = false;
});

let reading = Promise.resolve();
let latest = 0;

/** The messages on their way, the oldest first. */
export const outgoing: ReadonlySignal<readonly Outgoing[]> = computed(() =>
  items.value.filter((each) => isOurs(each, me.value)),
);

/** False where the browser has no room for messages, or keeps none: they are sent all the same, while the page is open. */
export const isKeeping: ReadonlySignal<boolean> = keeps;

/** Begin to send what is kept, by this page or one before it. */
export function startOutbox(): void {
  channel.onmessage = () => look();
  takeUp();
  addEventListener("storage", ({ key, newValue }) => {
    if (isWrittenDown(key) && newValue !== null) setTimeout(takeUp, LEFT_BEHIND_MS);
  });
  effect(() => {
    if (me.value) pocket.set(OWNER, me.value.owner);
    look();
  });
}

/** Keep a message, to be sent as soon as that can be done.  Returns its key once it is kept. */
export async function send(draft: Draft): Promise<string> {
  if (draft.sessionId === null && draft.opening === null)
    throw new Error("A message belongs to a session, or opens one.");
  // Two messages of one moment keep the order in which they were written.
  latest = Math.max(Date.now(), latest + 1);
  const fresh = { state: "waiting", turnId: null, problem: "", reply: null } as const;
  const owner = me.peek()?.owner ?? pocket.get(OWNER);
  const item: Outgoing = { ...draft, ...fresh, owner, key: newKey(), at: latest };
  own.add(item.key);
  await keep(item);
  return item.key;
}

async function keep(item: Outgoing): Promise<void> {
  writeDown(item);
  try {
    await storage.change(item.key, (kept) => kept ?? item);
  } finally {
    crossOut(item.key);
  }
  await changed();
}

/** Keep what a page has left behind that was gone too soon; if it was sent already, its key makes it the same message. */
async function takeUp(): Promise<void> {
  for (const each of writtenDown()) await keep(each).catch(() => undefined);
}

/** Send a message again that was refused. */
export async function resend(key: string): Promise<void> {
  await storage.change(key, (item) => item && { ...item, state: "waiting", problem: "" });
  await changed();
}

/** Forget a message. */
export async function discard(key: string): Promise<void> {
  await storage.change(key, () => null);
  await changed();
}

/** Say which turns the journal shows: their messages have arrived. */
export function shown(turns: readonly Shown[]): void {
  turns.forEach(see);
  if (!items.peek().some(hasArrived)) return;
  // At once, and not only when it is gone from where it is kept: until then it would be seen twice.
  items.value = items.peek().filter((each) => !hasArrived(each));
  look();
}

/** Tell all tabs that something is different. */
function changed(): Promise<void> {
  channel.postMessage(null);
  return look();
}

/** Look at what is kept, and see to what is due.  One look after the other, so that none undoes a later one. */
function look(): Promise<void> {
  // What cannot be read now may be read the next time.
  reading = reading.then(read).catch(() => undefined);
  return reading;
}

async function read(): Promise<void> {
  const found = await storage.all();
  for (const each of found) if (each.arrived || hasArrived(each)) await settle(each);
  const before = new Set(items.peek().map((each) => each.key));
  // What another tab has seen in the journal stays where it is until this one does; a page that begins does not show it.
  const left = found.filter((each) => !hasArrived(each) && (!each.arrived || before.has(each.key)));
  follow(items.peek(), found);
  items.value = left;
  for (const lane of new Set(left.filter(isDue).map(laneOf))) work(lane);
}

/** See to a message that has arrived: it need not be sent any more, and some time later not be kept. */
async function settle(item: Outgoing): Promise<void> {
  if (item.arrived) {
    if (isSpent(item)) await storage.change(item.key, () => null);
    return;
  }
  const receipt = { turn_id: turnOf(item) ?? item.turnId ?? "", session_id: "", reply: null };
  await storage.change(item.key, (kept) => kept && { ...accepted(kept, receipt), arrived: true });
  channel.postMessage(null);
}

/** Send what is due in a lane, for as long as that takes. */
async function work(lane: string): Promise<void> {
  if (working.has(lane)) return;
  working.add(lane);
  for (let tries = 0; ; tries += 1) {
    const outcome = await alone(`${NAME}.${lane}`, () => tryAt(lane));
    if (outcome === "done") break;
    await pause(outcome.retryAfterMs ?? patience(tries));
  }
  working.delete(lane);
  // Something may have been added at the last moment.
  look();
}

async function tryAt(lane: string): Promise<Outcome> {
  try {
    return await drain(lane, storage, transport, changed);
  } catch {
    return { retryAfterMs: null };
  }
}

/** Go to the session that a message of the one on this page was taken by: the one that follows it. */
function follow(before: readonly Outgoing[], now: readonly Outgoing[]): void {
  const here = place.peek();
  if (here.name !== "session") return;
  const sent = before.filter((each) => each.sessionId === here.id && own.has(each.key)).map((each) => each.key);
  const moved = now.find((each) => sent.includes(each.key) && each.sessionId !== here.id)?.sessionId;
  if (moved) go(to.session(moved));
}

/** What was accepted so long ago is in its session, whether anybody has looked there or not. */
const STALE_MS = 3_600_000;
/** So long after its acceptance the other tabs have seen a message in the journal as well. */
const OTHERS_MS = 60_000;
/** Turns that were seen lately: a journal can be faster than a receipt. */
const SEEN_MAX = 1_000;

/** A turn that the journal shows, with the key that its message was sent with. */
export interface Shown {
  id: string;
  key: string;
}

/** The turns, by their ids and by the keys of their messages. */
const seen = new Map<string, string>();

export function see({ id, key }: Shown): void {
  for (const name of key ? [id, key] : [id]) {
    seen.delete(name);
    seen.set(name, id);
  }
  while (seen.size > 2 * SEEN_MAX) seen.delete(seen.keys().next().value!);
}

/** Return the turn that a message has become, if the journal shows it. */
export const turnOf = ({ key }: Outgoing) => seen.get(key);

/** Whether a message is to be seen in its session: the journal says the same as a receipt, and is often there before it. */
export function hasArrived(item: Outgoing): boolean {
  const { key, state, turnId, reply } = item;
  if (seen.has(key)) return true;
  if (state !== "accepted") return false;
  return age(item) > STALE_MS || (reply === null && (turnId === null || seen.has(turnId)));
}

/** Whether no tab needs a message any longer that has arrived: each shows it until its own journal does. */
export const isSpent = (item: Outgoing) => age(item) > OTHERS_MS;

const age = ({ acceptedAt, at }: Outgoing) => Date.now() - (acceptedAt ?? at);
