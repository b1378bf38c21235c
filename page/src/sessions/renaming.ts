/** Which session is being given another name, and where: in the list, or above the conversation. */

import { signal } from "@preact/signals";

export type Where = "list" | "header";

export const renaming = signal<{ id: string; where: Where } | null>(null);

export const beginRenaming = (id: string, where: Where) => {
  renaming.value = { id, where };
};

export const isRenaming = (id: string, where: Where) => renaming.value?.id === id && renaming.value.where === where;
