/** Lists from the gateway: polled page by page, shown as a table. */

import { computed, type ReadonlySignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, Unanswered } from "../api.ts";
import { Button } from "../ui/button.tsx";
import { newLoader, whileVisible } from "../ui/requests.ts";
import { ErrorNotice, Skeleton } from "./parts.tsx";

interface ListingProps<T> {
  list: List<T>;
  /** Shown when the list is empty. */
  empty: ComponentChildren;
  children: (items: readonly T[]) => ComponentChildren;
}

/** A list in any state: loading, failed, empty or loaded, with a button that shows more. */
export function Listing<T>({ list, empty, children }: ListingProps<T>) {
  const { items, more, error } = list.listed.value;
  // The banner already says that the gateway is away; the items stay.
  const isNews = error !== undefined && !(items && error instanceof Unanswered);
  return (
    <>
      {isNews && <ErrorNotice error={error} onRetry={list.refresh} />}
      {items === undefined && error === undefined && <Skeleton />}
      {items?.length === 0 && empty}
      {items !== undefined && items.length > 0 && children(items)}
      {more && <ShowMore onMore={list.showMore} />}
    </>
  );
}

function ShowMore({ onMore }: { onMore: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const more = async () => {
    setBusy(true);
    await onMore();
    setBusy(false);
  };
  return (
    <div class="show-more">
      <Button disabled={busy} onClick={more}>
        {busy ? "Loading…" : "Show more"}
      </Button>
    </div>
  );
}

const PAGE = 50;
/** The largest page that the gateway returns. */
const PAGE_MAX = 500;
const REFRESH_MS = 4_000;

interface Page<T> {
  items: readonly T[];
  next_cursor?: string | null;
}

interface Listed<T> {
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

/** Poll the beginning of a list.  Items stay while it is refreshed, and when that fails. */
export function useList<T>(path: string, everyMs = REFRESH_MS): List<T> {
  const list = useMemo(() => listOf<T>(path), [path]);
  useEffect(() => whileVisible(list.refresh, everyMs), [list, everyMs]);
  return list;
}

function listOf<T>(path: string): List<T> {
  let limit = PAGE;
  const [loaded, refresh] = newLoader(() => readUpTo<T>(path, limit));
  const listed = computed(() => {
    const { value, error } = loaded.value;
    return { items: value?.items, more: value?.more ?? false, error };
  });
  const showMore = () => {
    limit += PAGE;
    return refresh();
  };
  return { listed, showMore, refresh };
}

async function readUpTo<T>(path: string, limit: number): Promise<{ items: readonly T[]; more: boolean }> {
  const items: T[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<T> = await get<Page<T>>(paged(path, cursor, Math.min(limit - items.length, PAGE_MAX)));
    items.push(...page.items);
    cursor = page.next_cursor ?? null;
  } while (cursor !== null && items.length < limit);
  return { items, more: cursor !== null };
}

function paged(path: string, cursor: string | null, limit: number): string {
  const parameters = new URLSearchParams({ limit: String(limit), ...(cursor ? { cursor } : {}) });
  return `${path}${path.includes("?") ? "&" : "?"}${parameters}`;
}

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  /** Takes the remaining width. */
  wide?: boolean;
}

interface TableProps<T> {
  /** What is listed, for screen readers. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

/** A table; on a phone each row is a card that shows the column title beside each value. */
export function Table<T>({ label, columns, rows, keyOf }: TableProps<T>) {
  return (
    <table class="rows" aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={column.wide ? "wide" : undefined}>
              {column.title || <span class="unseen">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => (
              <Cell key={column.title} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell<T>({ column, row }: { column: Column<T>; row: T }) {
  const inside = column.cell(row);
  return (
    <td data-title={column.title} class={column.wide ? "wide" : undefined}>
      {inside && <div class="rows-cell">{inside}</div>}
    </td>
  );
}
