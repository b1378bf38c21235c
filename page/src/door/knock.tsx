import { signal } from "@preact/signals";
import { guest } from "../me.ts";
import { Dialog } from "../ui/dialog.tsx";
import { WaysIn } from "./ways.tsx";

const knocked = signal(false);

/** Let a guest sign in who wants to do more than talk. */
export const knock = () => {
  knocked.value = true;
};

/** The door for guests, who are inside already. */
export function Knock() {
  if (!knocked.value || !guest.value) return null;
  const close = () => {
    knocked.value = false;
  };
  return (
    <Dialog title="Sign in" onClose={close}>
      <p>This machine needs no key to talk and to read. To change settings and to allow commands, sign in.</p>
      <WaysIn />
    </Dialog>
  );
}
