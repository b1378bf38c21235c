import { Icon } from "../../ui/icon.tsx";
import type { SettingsView } from "../../wire.ts";
import { RestartButton } from "../restart/restart.tsx";
import { load } from "./draft.ts";

/** What there is to do before the settings hold. */
export function Notice({ view }: { view: SettingsView }) {
  if (view.problem) {
    return (
      <div class="settings-notice bad" role="alert">
        <Icon name="warning" />
        <span>The file cannot be read as it is, so what is shown is what runs: {view.problem}</span>
      </div>
    );
  }
  if (!view.restart_needed) return null;
  return (
    <div class="settings-notice" role="status">
      <Icon name="info" />
      <span>What is saved differs from what runs. It holds after a restart.</span>
      <RestartButton label="Restart to apply" look="main" onBack={load} />
    </div>
  );
}
