/** The code of a sign-in link, which comes behind the # of the address. */

import { go, to } from "../router.ts";

/** Take the code out of the address at once, so that no bookmark, history or screenshot keeps it. */
export function takeCode(after = to.new()): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) go(after, { replace: true });
  return code;
}

/** A link that is opened in a tab that shows the page already changes nothing but the part behind the #. */
export function onCode(take: (code: string) => void): void {
  const listener = (event: HashChangeEvent) => {
    const code = takeCode(new URL(event.oldURL).hash || to.new());
    if (!code) return;
    // Nobody else may take the code for a place.
    event.stopImmediatePropagation();
    take(code);
  };
  addEventListener("hashchange", listener, { capture: true });
}
