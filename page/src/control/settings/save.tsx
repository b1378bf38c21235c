import { plural } from "../../format.ts";
import { to } from "../../router.ts";
import { Button } from "../../ui/button.tsx";
import { tell } from "../../ui/toast.tsx";
import { Trouble } from "../parts/trouble.tsx";
import { RestartButton } from "../restart/restart.tsx";
import { busy, canSave, changed, discard, load, problem, refusedKey, save, settings } from "./draft.ts";

/** What there is to do before what was chosen holds: save it, and then restart. */
export function SaveBar() {
  const waits = settings.value?.restart_needed ?? false;
  if (!changed.value && !waits && problem.value === undefined) return null;
  return (
    <section class="save-bar" aria-label="Changes">
      {problem.value !== undefined && <Complaint />}
      {changed.value > 0 ? <Saving /> : waits && <Restarting />}
    </section>
  );
}

function Complaint() {
  const key = refusedKey.value;
  if (!key) return <Trouble error={problem.value} onRetry={load} />;
  return (
    <p class="save-refused" role="alert">
      Nothing was saved: <a href={to.control("settings", key.split(".")[0]!)}>{key}</a> cannot be that.
    </p>
  );
}

function Saving() {
  const saved = async () => (await save()) && tell("Saved.");
  return (
    <div class="save-actions">
      <span>{plural(changed.value, "change")} to be saved</span>
      <Button onClick={discard}>Discard</Button>
      <Button look="main" disabled={!canSave.value} onClick={saved}>
        {busy.value ? "Trying them out…" : "Save"}
      </Button>
    </div>
  );
}

function Restarting() {
  const onBack = async () => {
    await load();
    tell("The gateway is back, with these settings.");
  };
  return (
    <div class="save-actions">
      <span>What is saved differs from what runs. It holds after a restart.</span>
      <RestartButton label="Restart to apply" look="main" onBack={onBack} />
    </div>
  );
}
