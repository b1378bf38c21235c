/** The page's own files: the service worker that caches them, and the notice when the gateway serves newer ones. */

import { effect } from "@preact/signals";
import { connection } from "./connection.ts";
import { showToast } from "./ui/toast.tsx";

const ASSETS = 'src="/assets/';
/** Long enough to finish a sentence. */
const SHOWN_MS = 120_000;

export function startUpdateNotice(): void {
  let wasAway = false;
  let isTold = false;
  effect(() => {
    if (connection.value === "away") wasAway = true;
    if (connection.value !== "live" || !wasAway || isTold) return;
    wasAway = false;
    isOutdated().then((outdated) => {
      if (!outdated || isTold) return;
      isTold = true;
      const reload = { label: "Reload", run: () => location.reload() };
      showToast("Holdfast was updated. Reload the page to use the new one.", { action: reload, shownMs: SHOWN_MS });
    });
  });
}

async function isOutdated(): Promise<boolean> {
  const script = document.querySelector<HTMLScriptElement>("script[type=module]");
  return script !== null && loadsAnotherScript(await servedDocument(), new URL(script.src).pathname);
}

/** Return the document that the gateway serves now; empty if it does not arrive. */
async function servedDocument(): Promise<string> {
  try {
    const response = await fetch("/", { cache: "no-store" });
    return response.ok ? await response.text() : "";
  } catch {
    return "";
  }
}

/** Whether a document loads another script.  A document without a script is truncated, or not the gateway's. */
export const loadsAnotherScript = (document: string, script: string) =>
  document.includes(ASSETS) && !document.includes(script);

const WORKER_PATH = "/sw.js";

/** The API with which browsers check script addresses; not all have it. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (address: string) => string },
  ): {
    createScriptURL(address: string): string;
  };
}

/** Register the service worker once the page has loaded. */
export function startServiceWorker(): void {
  if (!("serviceWorker" in navigator) || import.meta.env.DEV) return;
  addEventListener("load", () => {
    // Without it the page still works while the gateway answers.
    navigator.serviceWorker.register(scriptAddress()).catch(() => undefined);
  });
}

/** The policy allows one address: nothing else can become a script by it. */
function scriptAddress(): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("holdfast", { createScriptURL: () => WORKER_PATH });
  return policy?.createScriptURL(WORKER_PATH) ?? WORKER_PATH;
}
