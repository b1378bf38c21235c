/** What can be done with a session: rename, pin, archive, fork, export, end, and the menu of all that. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { patch, post } from "../api.ts";
import { go, to } from "../router.ts";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import { attempt, tell } from "../ui/toast.tsx";
import type { Change, SessionView } from "../wire.ts";
import { removeSession } from "./deletion.ts";
import { learn } from "./store.ts";

export type ExportFormat = "markdown" | "json";

const of = (session: SessionView, rest = "") => `/api/sessions/${encodeURIComponent(session.id)}${rest}`;

/** Change a session; the page shows it at once, and takes it back when the gateway refuses it.  Returns whether it was done. */
async function change(session: SessionView, wanted: Change): Promise<boolean> {
  const { title, pinned, archived } = { ...session, ...wanted };
  const label = wanted.title || session.label;
  learn([{ ...session, label, title, pinned: pinned ?? false, archived: archived ?? false }]);
  const changed = await attempt(() => patch<SessionView>(of(session), wanted));
  learn([changed ?? session]);
  return changed !== undefined;
}

export const rename = (session: SessionView, title: string) => change(session, { title });
export const pin = (session: SessionView) => change(session, { pinned: !session.pinned });

export async function archive(session: SessionView): Promise<void> {
  const archived = !session.archived;
  if (!(await change(session, { archived }))) return;
  const undo = { label: "Undo", run: () => change(session, { archived: !archived }) };
  tell(archived ? `“${session.label}” is archived.` : `“${session.label}” is out of the archive.`, { action: undo });
}

export async function end(session: SessionView): Promise<void> {
  const ended = await attempt(() => post<SessionView>(of(session, "/end")));
  if (ended) learn([ended]);
}

/** Copy the whole session, and go to the copy. */
export async function fork(session: SessionView): Promise<void> {
  const copy = await attempt(() => post<SessionView>(of(session, "/fork")));
  if (!copy) return;
  learn([copy]);
  go(to.session(copy.id));
}

/** Download a session; the browser names and keeps the file. */
export function download(session: SessionView, format: ExportFormat): void {
  const link = document.createElement("a");
  link.href = of(session, `/export?format=${format}`);
  link.download = "";
  link.click();
}

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

export type Where = "list" | "header";

export const renaming = signal<{ id: string; where: Where } | null>(null);

export const beginRenaming = (id: string, where: Where) => {
  renaming.value = { id, where };
};

export const isRenaming = (id: string, where: Where) => renaming.value?.id === id && renaming.value.where === where;

const TITLE_MAX = 200;

/** The name of a session as a field: Enter and leaving it keep what was typed, Escape does not. */
export function RenameField({ session }: { session: SessionView }) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), []);
  const finish = (keep: boolean) => {
    if (renaming.peek() === null) return;
    renaming.value = null;
    const title = field.current?.value.trim() ?? "";
    if (keep && title && title !== session.label) rename(session, title);
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
