import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { TextField } from "../../ui/text_field.tsx";
import { attempt, tell } from "../../ui/toast.tsx";
import type { Forgotten } from "../../wire.ts";

/** To be typed, because nothing brings it back. */
const WORD = "forget everything";

export function ForgetEverything({ onForgotten }: { onForgotten: () => void }) {
  const [asking, setAsking] = useState(false);
  return (
    <div class="memory-last">
      <Button look="bad" icon="trash" small onClick={() => setAsking(true)}>
        Forget everything…
      </Button>
      {asking && <Asking onClose={() => setAsking(false)} onForgotten={onForgotten} />}
    </div>
  );
}

function Asking({ onClose, onForgotten }: { onClose: () => void; onForgotten: () => void }) {
  const [typed, setTyped] = useState("");
  const sure = typed.trim().toLowerCase() === WORD;
  const forget = async (event: Event) => {
    event.preventDefault();
    const done = sure && (await attempt(() => post<Forgotten>("/api/memory/forget", { everything: true })));
    if (!done) return;
    onClose();
    onForgotten();
    report(done);
  };
  return (
    <Dialog title="Forget everything?" onClose={onClose}>
      <form class="memory-stack" onSubmit={forget}>
        <p>
          Every fact and the profile are deleted, here and by the memory provider, if there is another. Conversations
          stay. This cannot be undone.
        </p>
        <TextField label={`Type “${WORD}”`} value={typed} onInput={setTyped} />
        <div class="dialog-actions">
          <Button onClick={onClose}>Keep it</Button>
          <Button type="submit" look="bad" disabled={!sure}>
            Forget everything
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function report({ forgotten, elsewhere = 0, owed = 0, problems = [] }: Forgotten): void {
  const more = elsewhere ? `, and ${plural(elsewhere, "memory", "memories")} elsewhere` : "";
  tell(`${plural(forgotten, "memory", "memories")} forgotten${more}.`);
  if (owed) tell(`${plural(owed, "segment")} not committed yet will still be remembered; see Receipts.`);
  for (const each of problems) tell(each, { bad: true });
}
