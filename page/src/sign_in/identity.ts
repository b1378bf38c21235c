/** Who uses this browser, according to the gateway: signing in, signing out, and the codes of sign-in links. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, post, Refused, SIGNED_OUT } from "../api.ts";
import { go, to } from "../router.ts";
import { forgetLogin, isSignedIn, keepLogin, LOGIN } from "../signing.ts";
import { showError } from "../ui/toast.tsx";
import type { Credentials, Me, SignedIn } from "../wire.ts";

/** `unknown` until the gateway has said it; `outside` is at the door. */
type Access = "unknown" | "inside" | "outside";

const RETRY_MS = 2_000;

const identity = signal<Me | null>(null);
const accessState = signal<Access>("unknown");
const admissionCount = signal(0);
const lastProblem = signal<unknown>(null);

export const me: ReadonlySignal<Me | null> = identity;
export const access: ReadonlySignal<Access> = accessState;
/** Why nobody could be let in, for the door to show. */
export const signInProblem: ReadonlySignal<unknown> = lastProblem;
/** Counts up whenever somebody is let in: what waited for that tries again. */
export const admissions: ReadonlySignal<number> = admissionCount;
export const isOperator = computed(() => identity.value?.scopes.includes("admin") ?? false);
export const isGuest = computed(() => identity.value?.how === "guest");

let pending: Promise<void> | null = null;

/** Ask who this is, and open the house or the door.  While nobody answers, it is asked again and again. */
export function checkAccess(): Promise<void> {
  pending ??= updateAccess().finally(() => {
    pending = null;
  });
  return pending;
}

/** Begin to notice when this browser is not let in any more, or again. */
export function startIdentity(): void {
  // A request was answered with 401.
  addEventListener(SIGNED_OUT, () => {
    if (accessState.value !== "outside") checkAccess();
  });
  // Another tab signed in or out: this one is the same browser, and shows nothing more of what somebody left.
  addEventListener("storage", (event) => {
    if (event.key !== LOGIN) return;
    if (event.newValue === null) location.reload();
    else checkAccess();
  });
}

/** Sign this browser in.  Throws what the gateway says against it. */
export async function signIn(credentials: Credentials): Promise<void> {
  await keepLogin(await post<SignedIn>("/api/sign-in", credentials));
  await checkAccess();
}

/** Sign in with the code of a link; what is wrong with it is told at the door, and to those who come in without one. */
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
  // A sign-in that is over is in the way of a program of this machine, which needs none.
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

/** Take the code out of the address at once, so that no bookmark, history or screenshot keeps it. */
export function takeCode(after = to.new()): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) go(after, { replace: true });
  return code;
}

/** A link that is opened in a tab that shows the page already changes nothing but the part behind the #. */
export function onCode(take: (code: string) => void): void {
  const listener = (event: HashChangeEvent) => {
    const code = takeCode(new URL(event.oldURL).hash || to.new());
    if (!code) return;
    // Nobody else may take the code for a place.
    event.stopImmediatePropagation();
    take(code);
  };
  addEventListener("hashchange", listener, { capture: true });
}
