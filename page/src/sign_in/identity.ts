/** Who uses this browser, according to the gateway: signing in, signing out, and the codes of sign-in links. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, post, Refused, SIGNED_OUT } from "../api.ts";
import { go, to } from "../router.ts";
import { forgetLogin, isSignedIn, LOGIN, storeLogin } from "../signing.ts";
import { showError } from "../ui/toast.tsx";
import type { Credentials, Me, SignedIn } from "../wire.ts";

/** `unknown` until the gateway has answered; `outside` shows the sign-in page. */
type Access = "unknown" | "inside" | "outside";

const RETRY_MS = 2_000;

const identity = signal<Me | null>(null);
const accessState = signal<Access>("unknown");
const admissionCount = signal(0);
const lastProblem = signal<unknown>(null);

export const me: ReadonlySignal<Me | null> = identity;
export const access: ReadonlySignal<Access> = accessState;
/** Why the sign-in failed, for the sign-in page. */
export const signInProblem: ReadonlySignal<unknown> = lastProblem;
/** Counts successful checks; what waited for access tries again. */
export const admissions: ReadonlySignal<number> = admissionCount;
export const isOperator = computed(() => identity.value?.scopes.includes("admin") ?? false);
export const isGuest = computed(() => identity.value?.how === "guest");

let pending: Promise<void> | null = null;

/** Ask the gateway who this is, and show the page or the sign-in page.  Retried until an answer comes. */
export function checkAccess(): Promise<void> {
  pending ??= updateAccess().finally(() => {
    pending = null;
  });
  return pending;
}

/** Notice when this browser loses or gains access. */
export function startIdentity(): void {
  // A request was answered with 401.
  addEventListener(SIGNED_OUT, () => {
    if (accessState.value !== "outside") checkAccess();
  });
  // Another tab signed in or out.  On sign-out this tab reloads, so that it shows nothing private.
  addEventListener("storage", (event) => {
    if (event.key !== LOGIN) return;
    if (event.newValue === null) location.reload();
    else checkAccess();
  });
}

/** Sign this browser in.  Throws the gateway's error. */
export async function signIn(credentials: Credentials): Promise<void> {
  await storeLogin(await post<SignedIn>("/api/sign-in", credentials));
  await checkAccess();
}

/** Sign in with the code of a link.  The sign-in page shows its error; guests get a toast. */
export async function signInWith(code: string): Promise<void> {
  try {
    await signIn({ code });
  } catch (error) {
    await checkAccess();
    lastProblem.value = error;
    if (isGuest.value) showError(error);
  }
}

export async function signOut(): Promise<void> {
  await post<SignedIn>("/api/sign-out");
  await forgetLogin();
}

async function updateAccess(): Promise<void> {
  try {
    identity.value = await fetchIdentity();
  } catch (error) {
    lastProblem.value = error;
    setTimeout(checkAccess, RETRY_MS);
    return;
  }
  lastProblem.value = null;
  accessState.value = identity.value ? "inside" : "outside";
  if (identity.value) admissionCount.value += 1;
}

async function fetchIdentity(): Promise<Me | null> {
  const found = await fetchMe();
  if (found || !isSignedIn()) return found;
  // An expired sign-in would block a guest on the gateway's machine, who needs none.
  await forgetLogin();
  return fetchMe();
}

async function fetchMe(): Promise<Me | null> {
  try {
    return await get<Me>("/api/me");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return null;
    throw error;
  }
}

/** Remove the code from the address at once, so that no bookmark, history or screenshot holds it. */
export function takeCode(after = to.new()): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) go(after, { replace: true });
  return code;
}

/** Opening a link in a tab that already shows the page changes only the fragment. */
export function onCode(onCodeFound: (code: string) => void): void {
  const listener = (event: HashChangeEvent) => {
    const code = takeCode(new URL(event.oldURL).hash || to.new());
    if (!code) return;
    // The router must not take the code for a route.
    event.stopImmediatePropagation();
    onCodeFound(code);
  };
  addEventListener("hashchange", listener, { capture: true });
}
