import { useLayoutEffect, useRef } from "preact/hooks";
import type { SessionView } from "../wire.ts";
import { rename } from "./actions.ts";
import { renaming } from "./renaming.ts";

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
