import { useId } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { Badge } from "../../ui/parts.tsx";
import type { SettingView } from "../../wire.ts";
import { changes, fresh, leave, objections, reset } from "./draft.ts";
import { SettingField } from "./field.tsx";
import { nameOf } from "./sections.ts";
import { written } from "./value.ts";

/** One setting: what it means, what it is, where that was chosen, and another choice. */
export function SettingRow({ setting }: { setting: SettingView }) {
  const id = useId();
  const isChanged = setting.key in changes.value;
  const objection = objections.value[setting.key];
  return (
    <div class={isChanged ? "setting changed" : "setting"}>
      <div class="setting-text">
        <label for={id}>{nameOf(setting)}</label>
        <Source setting={setting} />
        <p id={`${id}-more`}>{setting.doc}</p>
        {objection && (
          <p id={`${id}-wrong`} class="setting-wrong" role="alert">
            {objection}
          </p>
        )}
      </div>
      <div class="setting-value">
        {isLocked(setting) ? (
          <Locked setting={setting} id={id} />
        ) : (
          <SettingField
            key={fresh.value}
            setting={setting}
            id={id}
            described={objection ? `${id}-more ${id}-wrong` : `${id}-more`}
            invalid={Boolean(objection)}
          />
        )}
        <Back setting={setting} isChanged={isChanged} />
      </div>
    </div>
  );
}

/** What the file cannot decide, or has a name that only the file can give. */
const isLocked = (setting: SettingView) =>
  setting.source === "environment" ||
  setting.source === "arguments" ||
  setting.editable === false ||
  setting.form === "any";

const SOURCES: Record<SettingView["source"], string> = {
  file: "chosen",
  environment: "from the environment",
  arguments: "from the command line",
  default: "default",
};

function Source({ setting }: { setting: SettingView }) {
  if (setting.key in changes.value) return <Badge tone="busy">to be saved</Badge>;
  return <Badge tone={setting.source === "default" ? "plain" : "note"}>{SOURCES[setting.source]}</Badge>;
}

function Locked({ setting, id }: { setting: SettingView; id: string }) {
  const shown = setting.secret ? (setting.value ? "set" : "") : written(setting, setting.value);
  return (
    <>
      <input id={id} class="input" readOnly value={shown} aria-describedby={`${id}-more`} />
      <p class="faint">{whyLocked(setting)}</p>
    </>
  );
}

function whyLocked(setting: SettingView): string {
  if (setting.source === "environment") return "A variable of the gateway’s environment decides it.";
  if (setting.source === "arguments") return "The command that started the gateway decides it.";
  return "It has a name of its own, and is changed in the file.";
}

function Back({ setting, isChanged }: { setting: SettingView; isChanged: boolean }) {
  if (isChanged) {
    return (
      <Button small onClick={() => leave(setting)}>
        Leave as it is
      </Button>
    );
  }
  if (setting.source !== "file" || isLocked(setting)) return null;
  return (
    <Button small onClick={() => reset(setting)}>
      {setting.secret ? "Remove it" : "Back to the default"}
    </Button>
  );
}
