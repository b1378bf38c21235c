/** Settings: section by section, the bar that saves them, and the way to the set-up wizard. */

import "./settings.css";
import { useEffect, useState } from "preact/hooks";
import { plural } from "../../format.ts";
import { SETUP, to } from "../../router.ts";
import { ModelSetup } from "../../setup/setup.tsx";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Empty } from "../../ui/parts.tsx";
import { showToast } from "../../ui/toast.tsx";
import type { SettingsView } from "../../wire.ts";
import { ErrorNotice, PageHead, Pending, useUnsavedWarning } from "../parts.tsx";
import { RestartToApply } from "../restart.tsx";
import { busy, canSave, changed, discard, load, problem, refusedKey, save, settings } from "./draft.ts";
import { SettingRow } from "./setting.tsx";
import { grouped, searchSettings, sectionOf, sections, titleOf } from "./values.ts";

const RESTART = "Restart to apply your changes.";
const ALL = { label: "Settings", href: to.control("settings") };

export function SettingsPage({ id }: { id: string | null }) {
  useEffect(() => {
    load();
  }, []);
  useUnsavedWarning(changed.value > 0);
  if (id === SETUP) {
    return (
      <>
        <PageHead title="Choose a model" lead="Four steps. Nothing changes until the last one." back={ALL} />
        <ModelSetup />
      </>
    );
  }
  return (
    <>
      <PageHead title="Settings" lead={<File />} />
      {settings.value === null && <Pending error={problem.value} onRetry={load} lines={8} />}
      {settings.value && <Sections view={settings.value} chosen={id} />}
    </>
  );
}

function File() {
  const file = settings.value?.file;
  return (
    <>
      Settings are saved to {file ? <code>{file}</code> : "the configuration file"}, and applied when the gateway
      starts.
    </>
  );
}

function Sections({ view, chosen }: { view: SettingsView; chosen: string | null }) {
  const [searched, setSearched] = useState("");
  const names = sections(view.items);
  const current = names.find((each) => each === chosen) ?? names[0];
  const visible = searched.trim()
    ? searchSettings(view.items, searched)
    : view.items.filter((each) => sectionOf(each) === current);
  return (
    <>
      {view.problem && <Unreadable problem={view.problem} />}
      <div class="settings-find">
        <input
          class="input"
          type="search"
          placeholder="Find a setting"
          aria-label="Find a setting"
          value={searched}
          onInput={(event) => setSearched(event.currentTarget.value)}
        />
        <nav class="sections" aria-label="Sections">
          {names.map((name) => (
            <a
              key={name}
              href={to.control("settings", name)}
              aria-current={!searched && name === current ? "page" : undefined}
              onClick={() => setSearched("")}
            >
              {titleOf(name)}
            </a>
          ))}
        </nav>
      </div>
      {!searched && current === "model" && <Guided />}
      {visible.length === 0 && <Empty icon="search" title="No results" />}
      {grouped(visible).map((group) => (
        <section key={group.name} class="settings-group" aria-label={group.name}>
          <h2>
            <code>[{group.name}]</code>
          </h2>
          {group.items.map((setting) => (
            <SettingRow key={setting.key} setting={setting} />
          ))}
        </section>
      ))}
      <SaveBar />
    </>
  );
}

function Unreadable({ problem }: { problem: string }) {
  return (
    <div class="settings-notice" role="alert">
      <Icon name="warning" />
      <span>The file cannot be read, so the running settings are shown: {problem}</span>
    </div>
  );
}

function Guided() {
  return (
    <a class="guided" href={to.setup()}>
      <strong>Choose a model step by step</strong>
      <span>Provider, key and model, tested before anything is saved.</span>
    </a>
  );
}

/** Saves the edits, then offers the restart that applies them. */
function SaveBar() {
  const waits = settings.value?.restart_needed ?? false;
  if (!changed.value && !waits && problem.value === undefined) return null;
  return (
    <section class="save-bar" aria-label="Changes">
      {problem.value !== undefined && <SaveProblem />}
      {changed.value > 0 ? <Saving /> : waits && <RestartToApply text={RESTART} onBack={load} />}
    </section>
  );
}

function SaveProblem() {
  const key = refusedKey.value;
  if (!key) return <ErrorNotice error={problem.value} onRetry={load} />;
  return (
    <p class="save-refused" role="alert">
      Nothing was saved: <a href={to.control("settings", key.split(".")[0]!)}>{key}</a> is not valid.
    </p>
  );
}

function Saving() {
  const saved = async () => (await save()) && showToast("Saved.");
  return (
    <div class="save-actions">
      <span>{plural(changed.value, "change")} not saved</span>
      <Button onClick={discard}>Discard</Button>
      <Button look="main" disabled={!canSave.value} onClick={saved}>
        {busy.value ? "Checking…" : "Save"}
      </Button>
    </div>
  );
}
