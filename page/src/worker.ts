/** The service worker, which opens the page also while the gateway is away. */

const PATH = "/sw.js";

/** What browsers check addresses of scripts with; not all of them do. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (address: string) => string },
  ): {
    createScriptURL(address: string): string;
  };
}

/** Register the worker, once the page has what it needs for itself. */
export function startWorker(): void {
  if (!("serviceWorker" in navigator) || import.meta.env.DEV) return;
  addEventListener("load", () => {
    // Without it the page works as well, as long as the gateway answers.
    navigator.serviceWorker.register(address()).catch(() => undefined);
  });
}

/** The policy knows one address: nothing else can become a script by it. */
function address(): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy("holdfast", { createScriptURL: () => PATH });
  return policy?.createScriptURL(PATH) ?? PATH;
}
