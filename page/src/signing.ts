/**
 * Signed requests: every request of a signed-in page carries a signature that is valid once, and never the key behind it.
 *
 * A program that takes the gateway's port while it is down receives only signatures, and the gateway has another nonce when
 * it is back.  The browser stores the key so that not even this page can read it.
 */

import { localStore } from "./browser.ts";
import { hmac, sha256 } from "./bytes.ts";
import type { SignedIn } from "./wire.ts";

/** The id of this browser's sign-in; all tabs hear when it changes. */
export const LOGIN = "holdfast.login";
/** The gateway's last nonce. */
const NONCE = "holdfast.nonce";
export const NONCE_HEADER = "X-Holdfast-Nonce";
const DATABASE = "holdfast-login";
const STORE = "keys";
/** The gateway may have restarted, and may have been busy since. */
export const TRIES = 3;
const HASH = "SHA-256";
/** The digest of an empty body, which most requests have. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Without TLS, on another machine, browsers store no unreadable keys: the secret itself is stored. */
type Key = CryptoKey | string;
type Body = string | Blob;

type Signer = { login: string; key: Key };

let current: Signer | null = null;

export const isSignedIn = () => current !== null || localStore.get(LOGIN) !== null;

/** Store a new sign-in.  The previous one is signed out, so that a copy of it is worthless. */
export async function storeLogin({ login, secret, nonce }: SignedIn): Promise<void> {
  if (!login || !secret) return;
  const before = await signer();
  const key = await importKey(secret);
  current = { login, key };
  localStore.set(NONCE, nonce ?? "");
  // Other tabs look for the key as soon as they see the login.
  if (await withKeyStore((store) => replaceKey(store, key, login))) localStore.set(LOGIN, login);
  // Not earlier: a tab that still signed with it would think the browser is signed out.
  if (before) await signOutPrevious(before);
}

function replaceKey(store: IDBObjectStore, key: Key, login: string): IDBRequest {
  store.clear();
  return store.put(key, login);
}

async function signOutPrevious(before: Signer): Promise<void> {
  const path = "/api/sign-out";
  try {
    await fetch(path, { method: "POST", headers: await proofOf(before, "POST", path) });
  } catch {
    // The gateway is away.  The login expires by itself.
  }
}

export async function forgetLogin(): Promise<void> {
  current = null;
  await withKeyStore((store) => store.clear());
  localStore.remove(LOGIN);
}

/** Send a signed request, again if the gateway asks for another nonce. */
export async function signedFetch(path: string, init: RequestInit & { body?: Body } = {}): Promise<Response> {
  for (let tries = 1; ; tries += 1) {
    const signature = isSignedIn() ? await proof(init.method ?? "GET", path, init.body) : {};
    const headers = { ...signature, ...init.headers };
    const response = await fetch(path, { ...init, headers });
    if (tries === TRIES || !takeNonce(response.headers.get(NONCE_HEADER))) return response;
  }
}

/** Take the nonce of an answer; false if there is none, and the answer stands. */
export function takeNonce(nonce: string | null): boolean {
  if (nonce) localStore.set(NONCE, nonce);
  return Boolean(nonce) && isSignedIn();
}

/** Return the headers that sign a request; none if this browser is not signed in. */
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
  if (login && current?.login !== login) {
    const key = await withKeyStore((store) => store.get(login));
    current = key ? { login, key: key as Key } : null;
  }
  return current;
}

async function importKey(secret: string): Promise<Key> {
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

/** Run an action on the stored keys; null if the browser stores none. */
async function withKeyStore(action: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  try {
    const database = await openKeyStore();
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

function openKeyStore(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
