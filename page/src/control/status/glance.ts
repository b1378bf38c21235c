/** How the gateway is: looked at every few seconds while a control page is open, by all of its parts together. */

import { type ReadonlySignal, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../../api.ts";
import type { Loaded } from "../../ui/load.ts";
import type { Status } from "../../wire.ts";
import { whileVisible } from "../parts/list.ts";

const LOOK_MS = 2_500;
/** One that does not answer a glance by then does not answer now. */
const PATIENCE_MS = 8_000;

const state = signal<Loaded<Status>>({ value: undefined, error: undefined });

/** The last that is known; with an error, it is from before. */
export const glance: ReadonlySignal<Loaded<Status>> = state;

let looking = false;

export async function look(): Promise<void> {
  if (looking) return;
  looking = true;
  try {
    state.value = { value: await get<Status>("/api/status", { patienceMs: PATIENCE_MS }), error: undefined };
  } catch (error) {
    state.value = { ...state.peek(), error };
  } finally {
    looking = false;
  }
}

/** Keep looking while this is shown. */
export function useGlance(everyMs = LOOK_MS): void {
  useEffect(() => whileVisible(look, everyMs), [everyMs]);
}
