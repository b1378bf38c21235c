/** Whether the sidebar is open: beside the page where there is room, over it on a phone. */

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { pocket } from "../browser.ts";
import { place } from "../router.ts";

const KEPT = "holdfast.sidebar";
const NARROW = matchMedia("(max-width: 52rem)");

const narrow = signal(NARROW.matches);
const opened = signal(!NARROW.matches && pocket.get(KEPT) !== "closed");

export const isNarrow: ReadonlySignal<boolean> = narrow;
export const isOpen: ReadonlySignal<boolean> = opened;

export function setOpen(open: boolean): void {
  opened.value = open;
  if (!narrow.value) pocket.set(KEPT, open ? "open" : "closed");
}

export function startDrawer(): void {
  NARROW.addEventListener("change", () => {
    narrow.value = NARROW.matches;
    opened.value = !NARROW.matches && pocket.get(KEPT) !== "closed";
  });
  // Whoever goes somewhere wants to see that, and not what lies over it.
  effect(() => {
    if (place.value && narrow.peek()) opened.value = false;
  });
}
