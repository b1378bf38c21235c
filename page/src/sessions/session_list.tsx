/** The list of sessions in the sidebar, with its filter. */

import { useEffect, useRef } from "preact/hooks";
import { online } from "../connection.ts";
import { route, to } from "../router.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import type { SessionView } from "../wire.ts";
import { beginRenaming, isRenaming, RenameField, SessionMenu } from "./actions.tsx";
import { removeSession } from "./deletion.ts";
import { channelOf, chatOf, originOf, StatusMark, WEB_CHANNEL } from "./labels.tsx";
import { channels, type Filter, filter, grouped, listedSessions, loadMore, moreState } from "./listing.ts";
import { listed } from "./store.ts";
import { unread } from "./unread.ts";

/** All sessions by day; more load on scrolling. */
export function SessionList() {
  if (!listed.value && listedSessions.value.length === 0) return online.value ? <SessionSkeleton /> : <Offline />;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys move between the links, which are inside.
    <div class="session-list" onKeyDown={moveFocus}>
      {grouped(listedSessions.value).map(({ heading, sessions }) => (
        <section key={heading} aria-label={heading}>
          <h2 class="session-day">{heading}</h2>
          <ul>
            {sessions.map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </ul>
        </section>
      ))}
      {listedSessions.value.length === 0 && moreState.value === "none" && <Nothing />}
      <More />
    </div>
  );
}

function Offline() {
  return <p class="session-nothing">Your sessions appear when the gateway is back.</p>;
}

function Nothing() {
  const { archived, channel } = filter.value;
  if (archived) return <p class="session-nothing">No archived sessions.</p>;
  if (channel) return <p class="session-nothing">No sessions from this channel yet.</p>;
  return <p class="session-nothing">Your conversations appear here.</p>;
}

/** The end of the list, which loads more when it becomes visible. */
function More() {
  const end = useRef<HTMLDivElement>(null);
  const state = moreState.value;
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

/** Move the focus to the next or previous session. */
function moveFocus(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by || !(event.target instanceof HTMLAnchorElement)) return;
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".session-link")];
  links[links.indexOf(event.target) + by]?.focus();
  event.preventDefault();
}

/** One session of the list. */
function SessionRow({ session }: { session: SessionView }) {
  if (isRenaming(session.id, "list")) {
    return (
      <li class="session-row">
        <RenameField session={session} />
      </li>
    );
  }
  const isNew = unread(session);
  const isOpen = route.value.name === "session" && route.value.id === session.id;
  return (
    <li class={`session-row ${session.state}${isNew ? " unread" : ""}`}>
      <a
        class="session-link"
        href={to.session(session.id)}
        aria-current={isOpen ? "page" : undefined}
        title={session.label}
        onKeyDown={(event) => onKey(event, session)}
      >
        <span class="session-name">
          <span class="session-label">{session.label}</span>
          {session.channel !== WEB_CHANNEL && <Origin session={session} />}
        </span>
        <StatusMark session={session} unread={isNew} />
      </a>
      <SessionMenu session={session} where="list" />
    </li>
  );
}

/** The channel of a session, and its chat. */
function Origin({ session }: { session: SessionView }) {
  const { name, icon } = originOf(session);
  const chat = chatOf(session);
  return (
    <span class="session-channel">
      <Icon name={icon} size={12} />
      <span>{name}</span>
      {chat && (
        <span class="session-chat">
          · <bdi>{chat}</bdi>
        </span>
      )}
    </span>
  );
}

function onKey(event: KeyboardEvent, session: SessionView): void {
  if (event.key === "F2") beginRenaming(session.id, "list");
  else if (event.key === "Delete") {
    neighbourOf(event.currentTarget as HTMLElement)?.focus();
    removeSession(session);
  } else return;
  event.preventDefault();
}

/** Return the session below in the list, or above for the last one. */
function neighbourOf(link: HTMLElement): HTMLElement | undefined {
  const links = [...document.querySelectorAll<HTMLElement>(".session-link")];
  const at = links.indexOf(link);
  return links[at + 1] ?? links[at - 1];
}

/** The filter: one channel or all, or the archive. */
export function SessionFilter() {
  const { channel, archived } = filter.value;
  const name = archived ? "Archive" : channel ? channelOf(channel).name : "All sessions";
  return (
    <div class="session-filter">
      <span>{name}</span>
      <Menu label={`Filter: ${name}`} icon="chevron" items={choices()} />
    </div>
  );
}

function choices(): MenuItem[] {
  const ofChannels = channels.value.map((each) => ({
    ...channelOf(each),
    searched: { channel: each, archived: false },
  }));
  return [
    choice("All sessions", "menu", { channel: null, archived: false }),
    ...(ofChannels.length > 1 ? ofChannels.map(({ name, icon, searched }) => choice(name, icon, searched)) : []),
    choice("Archive", "archive", { channel: null, archived: true }),
  ];
}

function choice(label: string, icon: MenuItem["icon"], searched: Filter): MenuItem {
  const isChosen = filter.value.channel === searched.channel && filter.value.archived === searched.archived;
  return {
    label,
    icon: isChosen ? "check" : icon,
    onSelect: () => {
      filter.value = searched;
    },
  };
}

/** The placeholder of the list. */
export function SessionSkeleton() {
  return (
    <div class="session-skeleton" role="status" aria-label="Loading the sessions">
      {["a", "b", "c", "d", "e", "f", "g"].map((each) => (
        <span key={each} />
      ))}
    </div>
  );
}
