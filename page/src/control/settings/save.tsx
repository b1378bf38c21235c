import { plural } from "../../format.ts";
import { Button } from "../../ui/button.tsx";
import { tell } from "../../ui/toast.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { busy, canSave, changed, discard, load, problem, save } from "./draft.ts";

/** What is to be changed, all at once. */
export function SaveBar() {
  if (!changed.value && problem.value === undefined) return null;
  const saved = async () => (await save()) && tell("Saved.");
  return (
    <section class="save-bar" aria-label="Changes">
      {problem.value !== undefined && <Trouble error={problem.value} onRetry={load} />}
      {changed.value > 0 && (
        <div class="save-actions">
          <span>{plural(changed.value, "change")} to be saved</span>
          <Button onClick={discard}>Discard</Button>
          <Button look="main" disabled={!canSave.value} onClick={saved}>
            {busy.value ? "Trying them out…" : "Save"}
          </Button>
        </div>
      )}
    </section>
  );
}
