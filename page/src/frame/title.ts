/** The title of the document: what is new, what runs, and where one is. */

import { effect } from "@preact/signals";
import { sessions } from "../activity.ts";
import { place } from "../router.ts";
import { currentSession } from "../sessions/current.ts";
import { unread } from "../sessions/seen.ts";

const NAME = "Holdfast";

export function startTitle(): void {
  effect(() => {
    const news = sessions.value.filter((each) => unread(each)).length;
    const isRunning = currentSession.value?.activity === "running";
    document.title = titled(where(), { news, isRunning });
  });
}

export function titled(here: string, { news, isRunning }: { news: number; isRunning: boolean }): string {
  return [news ? `(${news})` : "", isRunning ? "●" : "", here ? `${here} · ${NAME}` : NAME].filter(Boolean).join(" ");
}

function where(): string {
  const here = place.value;
  if (here.name === "control") return here.page[0]!.toUpperCase() + here.page.slice(1);
  return currentSession.value?.label ?? "";
}
