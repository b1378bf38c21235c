/** What can be done with a session: rename, pin, archive, fork, export, end, and the menu of all that. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { patch, post } from "../api.ts";
import { go, to } from "../router.ts";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import { attempt, showToast } from "../ui/toast.tsx";
import type { Change, SessionView } from "../wire.ts";
import { removeSession } from "./deletion.ts";
import { updateSessions } from "./store.ts";

type ExportFormat = "markdown" | "json";

const pathOf = (session: SessionView, rest = "") => `/api/sessions/${encodeURIComponent(session.id)}${rest}`;

/**
 * Change a session.  The page shows the change at once, and reverts it if the gateway refuses.  Returns whether it
 * succeeded.
 */
async function change(session: SessionView, changes: Change): Promise<boolean> {
  const { title, pinned, archived } = { ...session, ...changes };
  const label = changes.title || session.label;
  updateSessions([{ ...session, label, title, pinned: pinned ?? false, archived: archived ?? false }]);
  const changed = await attempt(() => patch<SessionView>(pathOf(session), changes));
  updateSessions([changed ?? session]);
  return changed !== undefined;
}

const rename = (session: SessionView, title: string) => change(session, { title });
const pin = (session: SessionView) => change(session, { pinned: !session.pinned });

export async function archive(session: SessionView): Promise<void> {
  const archived = !session.archived;
  if (!(await change(session, { archived }))) return;
  const undo = { label: "Undo", run: () => change(session, { archived: !archived }) };
  showToast(archived ? `“${session.label}” is archived.` : `“${session.label}” is no longer archived.`, {
    action: undo,
  });
}

async function end(session: SessionView): Promise<void> {
  const ended = await attempt(() => post<SessionView>(pathOf(session, "/end")));
  if (ended) updateSessions([ended]);
}

/** Copy the whole session, and go to the copy. */
async function fork(session: SessionView): Promise<void> {
  const copy = await attempt(() => post<SessionView>(pathOf(session, "/fork")));
  if (!copy) return;
  updateSessions([copy]);
  go(to.session(copy.id));
}

/** Download a session as a file. */
function download(session: SessionView, format: ExportFormat): void {
  const link = document.createElement("a");
  link.href = pathOf(session, `/export?format=${format}`);
  link.download = "";
  link.click();
}

/** Return all actions of a session, for its menus and for the palette. */
export function sessionMenuItems(session: SessionView, where: RenamePlace): MenuItem[] {
  const ending: MenuItem = { label: "End", icon: "stop", onSelect: () => end(session) };
  return [
    { label: "Rename", icon: "edit", onSelect: () => beginRenaming(session.id, where) },
    { label: session.pinned ? "Unpin" : "Pin", icon: "pin", onSelect: () => pin(session) },
    {
      label: session.archived ? "Unarchive" : "Archive",
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

export function SessionMenu({ session, where }: { session: SessionView; where: RenamePlace }) {
  return <Menu label={`Actions for “${session.label}”`} items={sessionMenuItems(session, where)} />;
}

type RenamePlace = "list" | "header";

const renaming = signal<{ id: string; where: RenamePlace } | null>(null);

export const beginRenaming = (id: string, where: RenamePlace) => {
  renaming.value = { id, where };
};

export const isRenaming = (id: string, where: RenamePlace) =>
  renaming.value?.id === id && renaming.value.where === where;

const TITLE_MAX = 200;

/** The name of a session as a field: Enter and blur save it, Escape cancels. */
export function RenameField({ session }: { session: SessionView }) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), []);
  const finish = (save: boolean) => {
    if (renaming.peek() === null) return;
    renaming.value = null;
    const title = field.current?.value.trim() ?? "";
    if (save && title && title !== session.label) rename(session, title);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter") finish(true);
    if (event.key === "Escape") finish(false);
    event.stopPropagation();
  };
  return (
    <input
      ref={field}
      class="rename-field"
      aria-label="Name of the session"
      defaultValue={session.label}
      maxLength={TITLE_MAX}
      onKeyDown={onKeyDown}
      onBlur={() => finish(true)}
    />
  );
}
