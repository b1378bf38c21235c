import { place, to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import type { SessionView } from "../wire.ts";
import { channelOf, OWN } from "./channels.ts";
import { removeSession } from "./deletion.ts";
import { SessionMenu } from "./menu.tsx";
import { RenameField } from "./rename.tsx";
import { beginRenaming, isRenaming } from "./renaming.ts";
import { unread } from "./seen.ts";
import { StateMark } from "./state.tsx";

/** One session of the list. */
export function SessionRow({ session }: { session: SessionView }) {
  if (isRenaming(session.id, "list")) {
    return (
      <li class="session-row">
        <RenameField session={session} />
      </li>
    );
  }
  const isNew = unread(session);
  const isOpen = place.value.name === "session" && place.value.id === session.id;
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
          {session.channel !== OWN && <ChannelName name={session.channel} />}
        </span>
        <StateMark session={session} unread={isNew} />
      </a>
      <SessionMenu session={session} where="list" />
    </li>
  );
}

function ChannelName({ name }: { name: string }) {
  const channel = channelOf(name);
  return (
    <span class="session-channel">
      <Icon name={channel.icon} size={12} />
      {channel.name}
    </span>
  );
}

function onKey(event: KeyboardEvent, session: SessionView): void {
  if (event.key === "F2") beginRenaming(session.id, "list");
  else if (event.key === "Delete") {
    besideOf(event.currentTarget as HTMLElement)?.focus();
    removeSession(session);
  } else return;
  event.preventDefault();
}

/** Return the session below a session of the list, or the one above the last. */
function besideOf(link: HTMLElement): HTMLElement | undefined {
  const links = [...document.querySelectorAll<HTMLElement>(".session-link")];
  const at = links.indexOf(link);
  return links[at + 1] ?? links[at - 1];
}
