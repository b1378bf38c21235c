/** Finding what was said: the words that are looked for, and what they were found in. */

import { computed, effect, signal } from "@preact/signals";
import { get, query } from "../api.ts";
import type { HitView, Search } from "../wire.ts";

/** Nobody means a single letter, and nobody has stopped typing yet. */
const LETTERS_MIN = 2;
const PAUSE_MS = 100;
const HITS_MAX = 50;

export interface Found {
  words: string;
  hits: readonly HitView[];
  /** Something older may be missing. */
  isIndexing: boolean;
  error: unknown;
}

export const words = signal("");
/** What was found last; it stays while the next words are looked for. */
export const found = signal<Found | null>(null);
export const isSearching = computed(() => words.value.trim().length >= LETTERS_MIN);

/** Look for the words whenever they change; a search that was overtaken is given up. */
export function startFinding(): void {
  effect(() => {
    const wanted = words.value.trim();
    if (!isSearching.value) {
      found.value = null;
      return;
    }
    const overtaken = new AbortController();
    const timer = setTimeout(() => look(wanted, overtaken.signal), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      overtaken.abort();
    };
  });
}

async function look(wanted: string, signal: AbortSignal): Promise<void> {
  try {
    const page = await get<Search>(`/api/search${query({ q: wanted, limit: HITS_MAX })}`, { signal });
    found.value = { words: wanted, hits: page.items, isIndexing: page.indexing, error: null };
  } catch (error) {
    if (!signal.aborted) found.value = { words: wanted, hits: [], isIndexing: false, error };
  }
}
