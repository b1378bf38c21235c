import { Menu, type MenuItem } from "../ui/menu.tsx";
import type { SessionView } from "../wire.ts";
import { archive, download, end, fork, pin } from "./actions.ts";
import { removeSession } from "./deletion.ts";
import { beginRenaming, type Where } from "./renaming.ts";

/** Everything that can be done with a session, for its menus and for the palette. */
export function itemsFor(session: SessionView, where: Where): MenuItem[] {
  const ending: MenuItem = { label: "End", icon: "stop", onSelect: () => end(session) };
  return [
    { label: "Rename", icon: "edit", onSelect: () => beginRenaming(session.id, where) },
    { label: session.pinned ? "Unpin" : "Pin", icon: "pin", onSelect: () => pin(session) },
    {
      label: session.archived ? "Take out of the archive" : "Archive",
      icon: "archive",
      onSelect: () => archive(session),
    },
    { label: "Fork", icon: "branch", onSelect: () => fork(session) },
    { label: "Export as Markdown", icon: "download", onSelect: () => download(session, "markdown") },
    { label: "Export as JSON", icon: "download", onSelect: () => download(session, "json") },
    ...(session.state === "ended" ? [] : [ending]),
    { label: "Delete", icon: "trash", bad: true, onSelect: () => removeSession(session) },
  ];
}

export function SessionMenu({ session, where }: { session: SessionView; where: Where }) {
  return <Menu label={`What to do with “${session.label}”`} items={itemsFor(session, where)} />;
}
