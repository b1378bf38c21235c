import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Command } from "../../ui/parts.tsx";
import type { NewKey } from "../../wire.ts";

/** A key at the one time when it can be seen. */
export function ShownOnce({ made, onClose }: { made: NewKey; onClose: () => void }) {
  return (
    <Dialog title={`The key ${made.made.name}`} onClose={onClose}>
      <p>Copy it now: only its digest is kept, so nobody can show it again.</p>
      <Command text={made.key} />
      <p class="faint">
        Programs send it as <code>Authorization: Bearer …</code>, or take it as their API key for{" "}
        <code>{location.origin}/v1</code>.
      </p>
      {made.first && (
        <p class="consequence">
          It is the first key: every program needs one from now on, on this machine too. This browser stays signed in.
        </p>
      )}
      <div class="dialog-actions">
        <Button look="main" onClick={onClose}>
          I have it
        </Button>
      </div>
    </Dialog>
  );
}
