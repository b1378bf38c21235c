/** A list of the gateway's, by pages: read again every few seconds while somebody looks, without a flicker. */

import { computed, type ReadonlySignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../../api.ts";
import { loading } from "../../ui/load.ts";
import { whileVisible } from "../../ui/visible.ts";

const PAGE = 50;
/** The largest page that the gateway gives out. */
const PAGE_MAX = 500;
const REFRESH_MS = 4_000;

interface Page<T> {
  items: readonly T[];
  next_cursor?: string | null;
}

export interface Listed<T> {
  /** Undefined until the first answer. */
  items: readonly T[] | undefined;
  more: boolean;
  error: unknown;
}

export interface List<T> {
  listed: ReadonlySignal<Listed<T>>;
  showMore: () => Promise<void>;
  refresh: () => Promise<void>;
}

/** Keep the beginning of a list.  What has been shown stays while it is read again, and when that goes wrong. */
export function useList<T>(path: string, everyMs = REFRESH_MS): List<T> {
  const list = useMemo(() => listOf<T>(path), [path]);
  useEffect(() => whileVisible(list.refresh, everyMs), [list, everyMs]);
  return list;
}

function listOf<T>(path: string): List<T> {
  let wanted = PAGE;
  const [loaded, refresh] = loading(() => readUpTo<T>(path, wanted));
  const listed = computed(() => {
    const { value, error } = loaded.value;
    return { items: value?.items, more: value?.more ?? false, error };
  });
  const showMore = () => {
    wanted += PAGE;
    return refresh();
  };
  return { listed, showMore, refresh };
}

async function readUpTo<T>(path: string, wanted: number): Promise<{ items: readonly T[]; more: boolean }> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await get<Page<T>>(paged(path, cursor, Math.min(wanted - items.length, PAGE_MAX)));
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null && items.length < wanted);
  return { items, more: cursor !== null };
}

function paged(path: string, cursor: string | null, limit: number): string {
  const asked = new URLSearchParams({ limit: String(limit), ...(cursor ? { cursor } : {}) });
  return `${path}${path.includes("?") ? "&" : "?"}${asked}`;
}
