/** Who uses this browser, according to the gateway: signing in, signing out, and the codes of sign-in links. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, post, Refused, SIGNED_OUT } from "../api.ts";
import { go, to } from "../router.ts";
import { forgetLogin, isSignedIn, keepLogin, LOGIN } from "../signing.ts";
import { tellProblem } from "../ui/toast.tsx";
import type { Credentials, Me, SignedIn } from "../wire.ts";

/** `unknown` until the gateway has said it; `outside` is at the door. */
export type Standing = "unknown" | "inside" | "outside";

const LOOK_AGAIN_MS = 2_000;

const known = signal<Me | null>(null);
const stands = signal<Standing>("unknown");
const entries = signal(0);
const trouble = signal<unknown>(null);

export const me: ReadonlySignal<Me | null> = known;
export const standing: ReadonlySignal<Standing> = stands;
/** Why nobody could be let in, for the door to show. */
export const problem: ReadonlySignal<unknown> = trouble;
/** Counts up whenever somebody is let in: what waited for that tries again. */
export const returned: ReadonlySignal<number> = entries;
export const operator = computed(() => known.value?.scopes.includes("admin") ?? false);
export const guest = computed(() => known.value?.how === "guest");

let asking: Promise<void> | null = null;

/** Ask who this is, and open the house or the door.  While nobody answers, it is asked again and again. */
export function enter(): Promise<void> {
  asking ??= ask().finally(() => {
    asking = null;
  });
  return asking;
}

/** Begin to notice when this browser is not let in any more, or again. */
export function startMe(): void {
  // A request was answered with 401.
  addEventListener(SIGNED_OUT, () => {
    if (stands.value !== "outside") enter();
  });
  // Another tab signed in or out: this one is the same browser, and shows nothing more of what somebody left.
  addEventListener("storage", (event) => {
    if (event.key !== LOGIN) return;
    if (event.newValue === null) location.reload();
    else enter();
  });
}

/** Sign this browser in.  Throws what the gateway says against it. */
export async function signIn(credentials: Credentials): Promise<void> {
  await keepLogin(await post<SignedIn>("/api/sign-in", credentials));
  await enter();
}

/** Sign in with the code of a link; what is wrong with it is told at the door, and to those who come in without one. */
export async function signInWith(code: string): Promise<void> {
  try {
    await signIn({ code });
  } catch (error) {
    await enter();
    trouble.value = error;
    if (guest.value) tellProblem(error);
  }
}

export async function signOut(): Promise<void> {
  await post<SignedIn>("/api/sign-out");
  await forgetLogin();
}

async function ask(): Promise<void> {
  try {
    known.value = await whoAmI();
  } catch (error) {
    trouble.value = error;
    setTimeout(enter, LOOK_AGAIN_MS);
    return;
  }
  trouble.value = null;
  stands.value = known.value ? "inside" : "outside";
  if (known.value) entries.value += 1;
}

async function whoAmI(): Promise<Me | null> {
  const found = await askedMe();
  if (found || !isSignedIn()) return found;
  // A sign-in that is over is in the way of a program of this machine, which needs none.
  await forgetLogin();
  return askedMe();
}

async function askedMe(): Promise<Me | null> {
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
