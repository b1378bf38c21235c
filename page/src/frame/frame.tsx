import { Composer } from "../composer/composer.tsx";
import { Welcome } from "../composer/welcome.tsx";
import { Boundary } from "../conversation/boundary.tsx";
import { OutboxList } from "../outbox/list.tsx";
import { type Place, place } from "../router.ts";
import { SessionPage } from "../sessions/page.tsx";
import { IconButton } from "../ui/button.tsx";
import { lazy } from "../ui/lazy.tsx";
import { Banner } from "./banner.tsx";
import { isNarrow, isOpen, setOpen } from "./drawer.ts";
import { Sidebar } from "./sidebar.tsx";
import "./frame.css";

const Control = lazy(() => import("../control/control.tsx").then((part) => part.Control));

/** The sidebar, and beside it the place where one is. */
export function Frame() {
  const isOver = isNarrow.value && isOpen.value;
  return (
    <div class={`frame${isOpen.value ? " open" : ""}`}>
      <button type="button" class="skip" onClick={skip}>
        Skip the sidebar
      </button>
      {isOpen.value ? <Sidebar isOver={isOver} /> : <Opener />}
      {isOver && <button type="button" class="scrim" aria-label="Hide the sidebar" onClick={() => setOpen(false)} />}
      <main class="room" id="main" tabIndex={-1} inert={isOver}>
        <Banner />
        <Boundary key={place.value.name === "session" ? place.value.id : place.value.name}>
          <Room place={place.value} />
        </Boundary>
      </main>
    </div>
  );
}

function Opener() {
  return (
    <div class="opener">
      <IconButton icon="sidebar" label="Show the sidebar" aria-expanded={false} onClick={() => setOpen(true)} />
    </div>
  );
}

function Room({ place }: { place: Place }) {
  switch (place.name) {
    case "session":
      return <SessionPage key={place.id} id={place.id} turn={place.turn} />;
    case "control":
      return <Control page={place.page} id={place.id} />;
    case "new":
      return <NewPage previous={place.previous} />;
  }
}

/** Where a session begins: it is opened with its first message. */
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

/** A link would change the address, which names the place where one is. */
function skip(): void {
  document.getElementById("main")?.focus();
}
