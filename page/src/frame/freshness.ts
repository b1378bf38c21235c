/** Whether the gateway has another page by now than the one that is shown: it was updated while this one was open. */

import { effect } from "@preact/signals";
import { link } from "../connection.ts";
import { tell } from "../ui/toast.tsx";

const ASSETS = 'src="/assets/';
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
  const own = document.querySelector<HTMLScriptElement>("script[type=module]");
  return own !== null && isAnother(await found(), new URL(own.src).pathname);
}

/** Return the document that the gateway has now; nothing when it does not come whole. */
async function found(): Promise<string> {
  try {
    const response = await fetch("/", { cache: "no-store" });
    return response.ok ? await response.text() : "";
  } catch {
    return "";
  }
}

/** Whether a document loads another script; one that loads none broke off, or is what somebody else says. */
export const isAnother = (document: string, script: string) => document.includes(ASSETS) && !document.includes(script);
