/** Whether the sidebar is open: beside the page where there is room, over it on a phone. */

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { localStore } from "../browser.ts";
import { route } from "../router.ts";

const STORAGE_KEY = "holdfast.sidebar";
const NARROW = matchMedia("(max-width: 52rem)");

const narrow = signal(NARROW.matches);
const opened = signal(!NARROW.matches && localStore.get(STORAGE_KEY) !== "closed");

export const isNarrow: ReadonlySignal<boolean> = narrow;
export const isOpen: ReadonlySignal<boolean> = opened;

export function setOpen(open: boolean): void {
  opened.value = open;
  if (!narrow.value) localStore.set(STORAGE_KEY, open ? "open" : "closed");
}

export function startDrawer(): void {
  NARROW.addEventListener("change", () => {
    narrow.value = NARROW.matches;
    opened.value = !NARROW.matches && localStore.get(STORAGE_KEY) !== "closed";
  });
  // Navigating closes the sidebar where it covers the page.
  effect(() => {
    if (route.value && narrow.peek()) opened.value = false;
  });
}
