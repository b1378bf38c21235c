import { useLayoutEffect, useRef } from "preact/hooks";
import { place, to } from "../router.ts";
import { SessionFilter } from "../sessions/filters.tsx";
import { isSearching } from "../sessions/finding.ts";
import { SessionList } from "../sessions/list.tsx";
import { SearchField, SearchResults } from "../sessions/search.tsx";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { setOpen } from "./drawer.ts";
import { Foot } from "./foot.tsx";
import "../sessions/sessions.css";

/** Everything one can go to.  Where it lies over the page it takes the focus, and Escape closes it. */
export function Sidebar({ isOver }: { isOver: boolean }) {
  const element = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (!isOver) return;
    element.current?.focus();
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && !event.defaultPrevented && setOpen(false);
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [isOver]);
  return (
    <aside ref={element} class="sidebar" id="sidebar" aria-label="Sessions" tabIndex={-1}>
      <header class="sidebar-head">
        <a class="brand" href={to.new()} aria-label="Holdfast: new chat">
          <img src="/icon.svg" alt="" width="28" height="28" />
          <span>Holdfast</span>
        </a>
        <IconButton icon="sidebar" label="Hide the sidebar" onClick={() => setOpen(false)} />
      </header>
      <div class="sidebar-top">
        <a class="new-chat" href={to.new()} aria-current={place.value.name === "new" ? "page" : undefined}>
          <Icon name="plus" size={17} />
          New chat
        </a>
        <SearchField />
      </div>
      {!isSearching.value && <SessionFilter />}
      <nav class="sidebar-list" aria-label={isSearching.value ? "What was found" : "Sessions"}>
        {isSearching.value ? <SearchResults /> : <SessionList />}
      </nav>
      <Foot />
    </aside>
  );
}
