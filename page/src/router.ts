/** The route: the fragment of the address, so that links, reloads and the back button work. */

import { computed, signal } from "@preact/signals";

export type Route =
  | { name: "new"; previous: string | null }
  | { name: "session"; id: string; turn: string | null }
  | { name: "control"; page: ControlPage; id: string | null };

export const CONTROL_PAGES = [
  "status",
  "approvals",
  "deliveries",
  "processes",
  "channels",
  "people",
  "jobs",
  "memory",
  "webhooks",
  "keys",
  "settings",
  "doctor",
] as const;
export type ControlPage = (typeof CONTROL_PAGES)[number];

const currentHash = signal(location.hash);

export const route = computed<Route>(() => parse(currentHash.value));

/** Follow links and the back button. */
export function startRouter(): void {
  addEventListener("hashchange", () => {
    currentHash.value = location.hash;
  });
}

export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  const [first = "", second = "", third = ""] = path.split("/").map(decode);
  const parameters = new URLSearchParams(search);
  if (first === "s" && second) return { name: "session", id: second, turn: parameters.get("turn") };
  const page = CONTROL_PAGES.find((each) => each === second);
  if (first === "control") return { name: "control", page: page ?? "status", id: third || null };
  return { name: "new", previous: parameters.get("previous") };
}

/** An address typed by hand may hold a stray %. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The set-up wizard, which is one of the settings pages. */
export const SETUP = "setup";
/** The set-up wizard of a bot, which is one of the channel pages. */
export const ADD = "add";

export const to = {
  new: (previous?: string | null) => `#/new${previous ? `?previous=${encodeURIComponent(previous)}` : ""}`,
  session: (id: string, turn?: string | null) =>
    `#/s/${encodeURIComponent(id)}${turn ? `?turn=${encodeURIComponent(turn)}` : ""}`,
  control: (page: ControlPage, id?: string | null) => `#/control/${page}${id ? `/${encodeURIComponent(id)}` : ""}`,
  setup: () => to.control("settings", SETUP),
  addBot: () => to.control("channels", ADD),
};

/** Navigate; with `replace` without a new history entry. */
export function go(hash: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  currentHash.value = hash;
}
