import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Command } from "../../ui/parts.tsx";
import type { NewRoute } from "../../wire.ts";
import { Address } from "./address.tsx";

/** What the sender of a route has to be given; its secret can be seen this once. */
export function ShownOnce({ made, onClose }: { made: NewRoute; onClose: () => void }) {
  return (
    <Dialog title={`The route ${made.route.name} is there`} onClose={onClose}>
      <p>Give its sender this address:</p>
      <Address path={made.route.path} />
      {made.secret && (
        <>
          <p>and this secret to sign with. Copy it now: it is not shown again.</p>
          <Command text={made.secret} />
        </>
      )}
      <div class="dialog-actions">
        <Button look="main" onClick={onClose}>
          {made.secret ? "I have it" : "Done"}
        </Button>
      </div>
    </Dialog>
  );
}
