/** What can be done with a session. */

import { learn } from "../activity.ts";
import { patch, post } from "../api.ts";
import { go, to } from "../router.ts";
import { attempt, tell } from "../ui/toast.tsx";
import type { Change, SessionView } from "../wire.ts";

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
