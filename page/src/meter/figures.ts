/** What a session has used, as lines that can be read. */

import { count, percent, price, tokens } from "../format.ts";
import type { Used } from "../journal/view.ts";

export interface Figure {
  name: string;
  value: string;
}

/** Return the whole in a few letters; nothing where nothing was used. */
export function brief(used: Used): string {
  const all = used.input + used.output;
  if (!all && !used.costMicros) return "";
  return [`${tokens(all)} tokens`, used.costMicros ? price(used.costMicros) : ""].filter(Boolean).join(" · ");
}

/** Return what was used, by kind; kinds of which there was nothing are left out. */
export function figures(used: Used): readonly Figure[] {
  const cached = used.cached ? ` (${percent(share(used))} from the cache)` : "";
  return [
    { name: "Model", value: used.model },
    { name: "Read", value: used.input ? `${count(used.input)} tokens${cached}` : "" },
    { name: "Written", value: used.output ? `${count(used.output)} tokens` : "" },
    { name: "Cost", value: used.costMicros ? price(used.costMicros) : "" },
  ].filter((each) => each.value);
}

/** Providers differ in whether what came from the cache was read as well. */
function share({ input, cached }: Used): number {
  return cached / Math.max(input, cached);
}
