/** Full-text search: the field, the requests, and the results in place of the session list. */

import { computed, effect, signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { get, query } from "../api.ts";
import { setOpen } from "../frame/drawer.ts";
import { to } from "../router.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Problem, Time } from "../ui/parts.tsx";
import type { HitView, Search } from "../wire.ts";
import { channelOf } from "./labels.tsx";
import { SessionSkeleton } from "./session_list.tsx";

/** The field should take the focus once it is rendered. */
const focusRequested = signal(false);

/** Focus the search field. */
export function focusSearch(): void {
  setOpen(true);
  focusRequested.value = true;
}

/** The search field; arrow down moves into the results. */
export function SearchField() {
  const field = useRef<HTMLInputElement>(null);
  // Before the next key, so that it goes into the field.
  useLayoutEffect(() => {
    if (!focusRequested.value) return;
    focusRequested.value = false;
    field.current?.focus();
    field.current?.select();
  }, [focusRequested.value]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") clearSearch(field.current);
    else if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".hit-link, .session-link")?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <search class="search-field">
      <Icon name="search" size={16} />
      <input
        ref={field}
        type="search"
        aria-label="Search in all sessions"
        placeholder="Search"
        value={searchWords.value}
        onInput={(event) => {
          searchWords.value = event.currentTarget.value;
        }}
        onKeyDown={onKeyDown}
      />
      {searchWords.value ? (
        <IconButton icon="close" label="Clear the search" size={14} onClick={() => clearSearch(field.current)} />
      ) : (
        <kbd>/</kbd>
      )}
    </search>
  );
}

function clearSearch(field: HTMLInputElement | null): void {
  if (!searchWords.value) field?.blur();
  searchWords.value = "";
}

const INDEXING = "Older messages are still being indexed. Some may be missing.";

/** The results, in place of the sessions. */
export function SearchResults() {
  const now = searchResult.value;
  if (!now) return <SessionSkeleton />;
  if (now.error) return <Problem error={now.error} />;
  if (now.hits.length === 0) {
    return <p class="session-nothing">{now.isIndexing ? INDEXING : "No results."}</p>;
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys move between the links, which are inside.
    <div class="hits" onKeyDown={moveFocus}>
      <p class="unseen" role="status">
        {now.hits.length} found
      </p>
      <ul>
        {now.hits.map((hit) => (
          <Hit key={`${hit.session_id}/${hit.seq}`} hit={hit} />
        ))}
      </ul>
      {now.isIndexing && <p class="session-nothing">{INDEXING}</p>}
    </div>
  );
}

/** A message links to its turn, a title to its session. */
function Hit({ hit }: { hit: HitView }) {
  const isTitle = hit.turn_id === null;
  const snippet = <Snippet text={hit.snippet} marks={hit.marks} />;
  return (
    <li>
      <a class="hit-link" href={to.session(hit.session_id, hit.turn_id)}>
        <span class="hit-head">
          <Icon name={channelOf(hit.channel).icon} size={13} />
          <span class="hit-label">{isTitle ? snippet : hit.label}</span>
          <Time at={hit.at} />
        </span>
        {!isTitle && <span class="hit-snippet">{snippet}</span>}
      </a>
    </li>
  );
}

function moveFocus(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") focusSearch();
  if (!by) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".hit-link")];
  const next = links[links.indexOf(document.activeElement as HTMLElement) + by];
  if (next) next.focus();
  else if (by < 0) focusSearch();
  event.preventDefault();
}

/** Single letters are not searched, and typing is debounced. */
const LETTERS_MIN = 2;
const PAUSE_MS = 100;
const HITS_MAX = 50;

interface SearchResult {
  hits: readonly HitView[];
  /** Older messages may be missing. */
  isIndexing: boolean;
  error: unknown;
}

export const searchWords = signal("");
/** The last result; it stays while the next search runs. */
const searchResult = signal<SearchResult | null>(null);
export const isSearching = computed(() => searchWords.value.trim().length >= LETTERS_MIN);

/** Search whenever the words change; the previous search is aborted. */
export function startSearch(): void {
  effect(() => {
    const wantedWords = searchWords.value.trim();
    if (!isSearching.value) {
      searchResult.value = null;
      return;
    }
    const overtaken = new AbortController();
    const timer = setTimeout(() => search(wantedWords, overtaken.signal), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      overtaken.abort();
    };
  });
}

async function search(wantedWords: string, signal: AbortSignal): Promise<void> {
  try {
    const page = await get<Search>(`/api/search${query({ q: wantedWords, limit: HITS_MAX })}`, { signal });
    searchResult.value = { hits: page.items, isIndexing: page.indexing, error: null };
  } catch (error) {
    if (!signal.aborted) searchResult.value = { hits: [], isIndexing: false, error };
  }
}

/** Text with the matches marked; `marks` are the start and end of each. */
function Snippet({ text, marks }: { text: string; marks: readonly (readonly [number, number])[] }) {
  return (
    <>
      {markedPieces(text, marks).map((piece) => (piece.marked ? <mark key={piece.at}>{piece.text}</mark> : piece.text))}
    </>
  );
}

interface Piece {
  at: number;
  text: string;
  marked: boolean;
}

export function markedPieces(text: string, marks: readonly (readonly [number, number])[]): Piece[] {
  const made: Piece[] = [];
  let at = 0;
  for (const [begin, end] of marks) {
    if (begin > at) made.push({ at, text: text.slice(at, begin), marked: false });
    made.push({ at: begin, text: text.slice(begin, end), marked: true });
    at = end;
  }
  if (at < text.length) made.push({ at, text: text.slice(at), marked: false });
  return made;
}
