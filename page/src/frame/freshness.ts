/** Whether the gateway has another page by now than the one that is shown: it was updated while this one was open. */

import { effect } from "@preact/signals";
import { link } from "../connection.ts";
import { tell } from "../ui/toast.tsx";

/** Long enough for somebody to finish a sentence. */
const SHOWN_MS = 120_000;

export function startFreshness(): void {
  let wasAway = false;
  let isTold = false;
  effect(() => {
    if (link.value === "away") wasAway = true;
    if (link.value !== "live" || !wasAway || isTold) return;
    wasAway = false;
    isOutdated().then((outdated) => {
      if (!outdated || isTold) return;
      isTold = true;
      const reload = { label: "Reload", run: () => location.reload() };
      tell("Holdfast was updated. Reload the page to use the new one.", { action: reload, shownMs: SHOWN_MS });
    });
  });
}

async function isOutdated(): Promise<boolean> {
  const response = await fetch("/", { cache: "no-store" }).catch(() => null);
  const own = document.querySelector<HTMLScriptElement>("script[type=module]");
  if (!response?.ok || !own) return false;
  return !(await response.text()).includes(new URL(own.src).pathname);
}
