/** Signing: every request of a signed-in page carries a signature that is good once, and never the key behind it.
 *
 * Whoever listens on the gateway's port while it is away is shown signatures only, and the gateway has another nonce when it
 * is back.  The browser keeps the key so that not even this page can read it.
 */

import { localStore } from "./browser.ts";
import { hmac, sha256 } from "./bytes.ts";
import type { SignedIn } from "./wire.ts";

/** Which sign-in this browser has; all tabs hear of it when that changes. */
export const LOGIN = "holdfast.login";
/** What the gateway last wanted to be signed. */
const NONCE = "holdfast.nonce";
export const NONCE_HEADER = "X-Holdfast-Nonce";
const DATABASE = "holdfast-login";
const STORE = "keys";
/** The gateway may have started anew, and may have been asked much since. */
export const TRIES = 3;
const HASH = "SHA-256";
/** The digest of nothing, which most requests have for a body. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Without TLS, on another machine, browsers keep no keys that cannot be read: the secret itself has to do. */
type Key = CryptoKey | string;
type Body = string | Blob;

type Signer = { login: string; key: Key };

let held: Signer | null = null;

export const isSignedIn = () => held !== null || localStore.get(LOGIN) !== null;

/** Keep what the gateway has given to this browser.  What it had before is signed out: a copy of it opens nothing more. */
export async function keepLogin({ login, secret, nonce }: SignedIn): Promise<void> {
  if (!login || !secret) return;
  const before = await signer();
  const key = await imported(secret);
  held = { login, key };
  localStore.set(NONCE, nonce ?? "");
  // Other tabs look for the key as soon as they hear of the login.
  if (await kept((store) => renewed(store, key, login))) localStore.set(LOGIN, login);
  // Not earlier: a tab that still signed with it would take the whole browser for signed out.
  if (before) await leave(before);
}

function renewed(store: IDBObjectStore, key: Key, login: string): IDBRequest {
  store.clear();
  return store.put(key, login);
}

async function leave(before: Signer): Promise<void> {
  const path = "/api/sign-out";
  try {
    await fetch(path, { method: "POST", headers: await proofOf(before, "POST", path) });
  } catch {
    // The gateway is away again.  The login ends by itself.
  }
}

export async function forgetLogin(): Promise<void> {
  held = null;
  await kept((store) => store.clear());
  localStore.remove(LOGIN);
}

/** Ask the gateway with a signature, once more if it wants another. */
export async function signedFetch(path: string, init: RequestInit & { body?: Body } = {}): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const signature = isSignedIn() ? await proof(init.method ?? "GET", path, init.body) : {};
    const headers = { ...signature, ...init.headers };
    const response = await fetch(path, { ...init, headers });
    if (tries === TRIES || !wantsAnother(response.headers.get(NONCE_HEADER))) return response;
  }
}

/** Take the nonce of an answer; false where there is none, and the answer stands. */
export function wantsAnother(nonce: string | null): boolean {
  if (nonce) localStore.set(NONCE, nonce);
  return Boolean(nonce) && isSignedIn();
}

/** Return what shows that this page asks exactly this; nothing where nobody is signed in. */
export async function proof(method: string, path: string, body?: Body): Promise<Record<string, string>> {
  const found = await signer();
  return found ? proofOf(found, method, path, body) : {};
}

async function proofOf(found: Signer, method: string, path: string, body?: Body): Promise<Record<string, string>> {
  const { pathname, search } = new URL(path, location.href);
  const nonce = localStore.get(NONCE) ?? "";
  const number = hex(crypto.getRandomValues(new Uint8Array(16)));
  const digest = body ? await digestOf(body) : EMPTY;
  const signature = await sign(found.key, [method, pathname + search, digest, nonce, number].join("\n"));
  return { "X-Holdfast-Proof": [found.login, nonce, number, digest, signature].join(".") };
}

async function signer(): Promise<Signer | null> {
  const login = localStore.get(LOGIN);
  if (login && held?.login !== login) {
    const key = await kept((store) => store.get(login));
    held = key ? { login, key: key as Key } : null;
  }
  return held;
}

async function imported(secret: string): Promise<Key> {
  if (!crypto.subtle) return secret;
  return crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: HASH }, false, ["sign"]);
}

async function sign(key: Key, text: string): Promise<string> {
  if (typeof key === "string") return hex(hmac(bytes(key), bytes(text)));
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes(text))));
}

async function digestOf(body: Body): Promise<string> {
  const read = typeof body === "string" ? bytes(body) : new Uint8Array(await body.arrayBuffer());
  return hex(crypto.subtle ? new Uint8Array(await crypto.subtle.digest(HASH, read)) : sha256(read));
}

const bytes = (text: string) => new TextEncoder().encode(text);
const hex = (found: Uint8Array) => Array.from(found, (each) => each.toString(16).padStart(2, "0")).join("");

/** Do something with the keys that the browser keeps; nothing where it keeps none. */
async function kept(action: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  try {
    const database = await opened();
    const change = database.transaction(STORE, "readwrite");
    const request = action(change.objectStore(STORE));
    await new Promise<void>((resolve, reject) => {
      change.oncomplete = () => resolve();
      change.onabort = () => reject(change.error);
    });
    database.close();
    return request.result;
  } catch {
    return null;
  }
}

function opened(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
