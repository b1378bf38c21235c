/** Which of the two lies over the page: the palette, or the help. */

import { computed, signal } from "@preact/signals";

const shown = signal<"palette" | "help" | null>(null);

export const paletteShown = computed(() => shown.value === "palette");
export const helpShown = computed(() => shown.value === "help");

export const showPalette = () => {
  shown.value = "palette";
};
export const showHelp = () => {
  shown.value = "help";
};
export const hide = () => {
  shown.value = null;
};
