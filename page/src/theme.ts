/** Light or dark: as the system has it, or as somebody chose. */

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { pocket } from "./browser.ts";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEPT = "holdfast.theme";
const chosen = signal<Theme>(kept());

export const theme: ReadonlySignal<Theme> = chosen;

export function setTheme(next: Theme): void {
  chosen.value = next;
  pocket.set(KEPT, next);
}

/** Let the document follow the choice. */
export function startTheme(): void {
  effect(() => {
    const root = document.documentElement;
    if (chosen.value === "system") delete root.dataset.theme;
    else root.dataset.theme = chosen.value;
    colourBrowser();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", colourBrowser);
  addEventListener("storage", (event) => {
    if (event.key === KEPT) chosen.value = kept();
  });
}

/** The browser's own parts take the colour of the ground, which only the browser can work out. */
function colourBrowser(): void {
  const ground = getComputedStyle(document.documentElement).backgroundColor;
  for (const each of document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")) each.content = ground;
}

function kept(): Theme {
  const found = pocket.get(KEPT);
  return THEMES.find((each) => each === found) ?? "system";
}
