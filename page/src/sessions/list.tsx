import { useEffect, useRef } from "preact/hooks";
import { listed } from "../activity.ts";
import { online } from "../connection.ts";
import { Button } from "../ui/button.tsx";
import { grouped } from "./groups.ts";
import { filter, loadMore, more, shown } from "./listing.ts";
import { SessionRow } from "./row.tsx";
import { SessionSkeleton } from "./skeleton.tsx";

/** All sessions, by day; more of them come as one scrolls. */
export function SessionList() {
  if (!listed.value && shown.value.length === 0) return online.value ? <SessionSkeleton /> : <Away />;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys move between the links, which are inside.
    <div class="session-list" onKeyDown={step}>
      {grouped(shown.value).map(({ heading, sessions }) => (
        <section key={heading} aria-label={heading}>
          <h2 class="session-day">{heading}</h2>
          <ul>
            {sessions.map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </ul>
        </section>
      ))}
      {shown.value.length === 0 && more.value === "none" && <Nothing />}
      <More />
    </div>
  );
}

function Away() {
  return <p class="session-nothing">Your sessions will be listed when the gateway is back.</p>;
}

function Nothing() {
  const { archived, channel } = filter.value;
  if (archived) return <p class="session-nothing">What you archive is kept here.</p>;
  if (channel) return <p class="session-nothing">Nothing came this way yet.</p>;
  return <p class="session-nothing">Your conversations will be listed here.</p>;
}

/** The end of the list, which reads on when it comes into view. */
function More() {
  const end = useRef<HTMLDivElement>(null);
  const state = more.value;
  useEffect(() => {
    if (!end.current || state !== "more") return;
    const watch = new IntersectionObserver(([entry]) => entry?.isIntersecting && loadMore());
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [state]);
  if (state === "none") return null;
  return (
    <div ref={end} class="session-more">
      {state === "failed" ? (
        <Button small icon="retry" onClick={loadMore}>
          Show more
        </Button>
      ) : (
        <span class={state === "loading" ? "more-dots" : "more-dots still"} />
      )}
    </div>
  );
}

/** Move the focus from one session to the next. */
function step(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !(event.target instanceof HTMLAnchorElement)) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".session-link")];
  links[links.indexOf(event.target) + by]?.focus();
  event.preventDefault();
}
