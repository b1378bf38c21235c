/** Which of the two lies over the page: the palette, or the help. */

import { computed, signal } from "@preact/signals";

type Cover = "palette" | "help";

const shown = signal<Cover | null>(null);

export const paletteShown = computed(() => shown.value === "palette");
export const helpShown = computed(() => shown.value === "help");

const show = (cover: Cover) => () => {
  shown.value = cover;
};
/** A dialog says late that it was closed: by then the other one may be there, and stays. */
const hide = (cover: Cover) => () => {
  if (shown.value === cover) shown.value = null;
};

export const showPalette = show("palette");
export const showHelp = show("help");
export const hidePalette = hide("palette");
export const hideHelp = hide("help");
