/** The frame of the page: the sidebar, the banner, and the place for the current route. */

import "./frame.css";
import "../sessions/sessions.css";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Composer } from "../composer/composer.tsx";
import { Welcome } from "../composer/welcome.tsx";
import { offlineSince } from "../connection.ts";
import { clockTime } from "../format.ts";
import { OutboxList } from "../outbox/list.tsx";
import { showPalette } from "../palette/shortcuts.tsx";
import { type Route, route, to } from "../router.ts";
import { SessionPage } from "../sessions/page.tsx";
import { isSearching, SearchField, SearchResults } from "../sessions/search.tsx";
import { SessionFilter, SessionList } from "../sessions/session_list.tsx";
import { isGuest } from "../sign_in/identity.ts";
import { openSignIn } from "../sign_in/sign_in.tsx";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { keyLabels } from "../ui/keys.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Menu } from "../ui/menu.tsx";
import { ErrorBoundary } from "../ui/parts.tsx";
import { isNarrow, isOpen, setOpen } from "./drawer.ts";
import { userMenuItems } from "./user_menu.ts";

const Control = lazy(() => import("../control/control.tsx").then((part) => part.Control));

/** The sidebar, and the page of the current route beside it. */
export function Frame() {
  const isOver = isNarrow.value && isOpen.value;
  return (
    <div class={`frame${isOpen.value ? " open" : ""}`}>
      <button type="button" class="skip" onClick={skip}>
        Skip the sidebar
      </button>
      {isOpen.value ? <Sidebar isOver={isOver} /> : <SidebarOpener />}
      {isOver && <button type="button" class="scrim" aria-label="Hide the sidebar" onClick={() => setOpen(false)} />}
      <main class="room" id="main" tabIndex={-1} inert={isOver}>
        <OfflineBanner />
        <ErrorBoundary key={route.value.name === "session" ? route.value.id : route.value.name}>
          <CurrentPage place={route.value} />
        </ErrorBoundary>
      </main>
    </div>
  );
}

function SidebarOpener() {
  return (
    <div class="opener">
      <IconButton icon="sidebar" label="Show the sidebar" aria-expanded={false} onClick={() => setOpen(true)} />
    </div>
  );
}

function CurrentPage({ place }: { place: Route }) {
  switch (place.name) {
    case "session":
      return <SessionPage key={place.id} id={place.id} turn={place.turn} />;
    case "control":
      return <Control page={place.page} id={place.id} />;
    case "new":
      return <NewPage previous={place.previous} />;
  }
}

/** The page of a new session, which is opened by its first message. */
function NewPage({ previous }: { previous: string | null }) {
  return (
    <section class="new-page" aria-label="New chat">
      <div class="new-body">
        <Welcome previous={previous} />
        <OutboxList sessionId={null} sessionKey={null} />
      </div>
      <Composer sessionId={null} previous={previous} conversation={null} />
    </section>
  );
}

/** A link would change the address, which holds the route. */
function skip(): void {
  document.getElementById("main")?.focus();
}

/** A shorter absence of the gateway is not worth a banner. */
const DELAY_MS = 1_500;

/** Says that the gateway is away, and that nothing is lost. */
function OfflineBanner() {
  const since = useDelayed(offlineSince.value);
  return (
    <div role="status">
      {since !== null && (
        <p class="away-banner">
          <Icon name="offline" size={16} />
          <span>
            The gateway has not answered since {clockTime(since)}. Your messages are kept and will be sent when it is
            back.
          </span>
        </p>
      )}
    </div>
  );
}

/** Return a moment once it is long enough ago; null again at once. */
function useDelayed(moment: number | null): number | null {
  const [delayed, setDelayed] = useState<number | null>(null);
  useEffect(() => {
    if (moment === null) return setDelayed(null);
    const timer = setTimeout(() => setDelayed(moment), moment + DELAY_MS - Date.now());
    return () => clearTimeout(timer);
  }, [moment]);
  return delayed;
}

/** The sidebar.  Where it covers the page, it takes the focus and Escape closes it. */
function Sidebar({ isOver }: { isOver: boolean }) {
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
        <a class="new-chat" href={to.new()} aria-current={route.value.name === "new" ? "page" : undefined}>
          <Icon name="plus" size={17} />
          New chat
        </a>
        <SearchField />
      </div>
      {!isSearching.value && <SessionFilter />}
      <nav class="sidebar-list" aria-label={isSearching.value ? "Search results" : "Sessions"}>
        {isSearching.value ? <SearchResults /> : <SessionList />}
      </nav>
      <SidebarFooter />
    </aside>
  );
}

/** The footer of the sidebar: the gateway, and this browser. */
function SidebarFooter() {
  return (
    <footer class="sidebar-foot">
      <a
        class="foot-link"
        href={to.control("status")}
        aria-current={route.value.name === "control" ? "page" : undefined}
      >
        <Icon name="gauge" size={17} />
        Gateway
      </a>
      {isGuest.value && (
        <button
          type="button"
          class="foot-guest"
          title="Sign in to change settings and approve commands"
          onClick={openSignIn}
        >
          Guest
        </button>
      )}
      <IconButton icon="command" label={`Commands (${keyLabels("mod+k").join(" ")})`} onClick={showPalette} />
      <Menu label="Theme, help and sign-in" icon="gear" items={userMenuItems()} />
    </footer>
  );
}
