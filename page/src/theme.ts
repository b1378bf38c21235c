/** The theme: light or dark, as the system has it or as chosen in this browser. */

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { localStore } from "./browser.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORAGE_KEY = "holdfast.theme";
const chosen = signal<Theme>(storedTheme());

export const theme: ReadonlySignal<Theme> = chosen;

export function setTheme(next: Theme): void {
  chosen.value = next;
  localStore.set(STORAGE_KEY, next);
}

/** Apply the theme to the document. */
export function startTheme(): void {
  effect(() => {
    const root = document.documentElement;
    if (chosen.value === "system") delete root.dataset.theme;
    else root.dataset.theme = chosen.value;
    colourBrowser();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", colourBrowser);
  addEventListener("storage", (event) => {
    if (event.key === STORAGE_KEY) chosen.value = storedTheme();
  });
}

/** The browser's own interface takes the background colour, which only the browser can compute. */
function colourBrowser(): void {
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  for (const each of document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")) each.content = ground;
}

function storedTheme(): Theme {
  const found = localStore.get(STORAGE_KEY);
  return THEMES.find((each) => each === found) ?? "system";
}
