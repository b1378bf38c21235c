/** The document of what is remembered, as it was read and as it is edited; it stays while other pages are looked at. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import { get, put } from "../../api.ts";
import { newDoing } from "../../ui/doing.ts";
import type { Document, Edited } from "../../wire.ts";

const PATH = "/api/memory/document";

const read = signal<string | null>(null);
const others = signal<string | null>(null);
const doing = newDoing();

/** As it was read; null until then. */
export const base: ReadonlySignal<string | null> = read;
/** As it is to be. */
export const written = signal("");
/** What it has become since it was read, where that is something else. */
export const theirs: ReadonlySignal<string | null> = others;
export const { problem, busy } = doing;
export const isChanged = computed(() => read.value !== null && written.value !== read.value);

/** Begin with a document; what was written before is gone. */
export function begin(markdown: string): void {
  read.value = written.value = markdown;
  others.value = null;
  doing.forget();
}

/** Read the document, unless there is something in it that is not saved. */
export async function load(): Promise<void> {
  if (!isChanged.value) await doing.run(async () => begin((await get<Document>(PATH)).markdown));
}

/** Save what was written; what changed meanwhile is shown first, unless it is to be saved `anyway`. */
export async function save(anyway: boolean): Promise<Edited | undefined> {
  return doing.run(async () => {
    const now = (await get<Document>(PATH)).markdown;
    if (!anyway && now !== read.value) {
      others.value = now;
      return undefined;
    }
    const edited = await put<Edited>(PATH, { base: read.value, markdown: written.value });
    begin(edited.markdown);
    return edited;
  });
}
