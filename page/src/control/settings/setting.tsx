/** One setting: its description, its value, where that comes from, and the field to change it. */

import { useId, useState } from "preact/hooks";
import { errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Badge } from "../../ui/parts.tsx";
import type { SettingView } from "../../wire.ts";
import { changeSetting, changes, objections, reportInvalid, reset, resetCount, revert } from "./draft.ts";
import { fieldText, nameOf, parseField } from "./values.ts";

/** One setting: its description, its value, its source, and the field to change it. */
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
            key={resetCount.value}
            setting={setting}
            id={id}
            described={objection ? `${id}-more ${id}-wrong` : `${id}-more`}
            invalid={Boolean(objection)}
          />
        )}
        <RevertButton setting={setting} isChanged={isChanged} />
      </div>
    </div>
  );
}

/** Set outside the file, or editable only in the file. */
const isLocked = (setting: SettingView) =>
  setting.source === "environment" ||
  setting.source === "arguments" ||
  setting.editable === false ||
  setting.form === "any";

const SOURCES: Record<SettingView["source"], string> = {
  file: "changed",
  environment: "from the environment",
  arguments: "from the command line",
  default: "default",
};

function Source({ setting }: { setting: SettingView }) {
  if (setting.key in changes.value) return <Badge tone="busy">not saved</Badge>;
  return <Badge tone={setting.source === "default" ? "plain" : "note"}>{SOURCES[setting.source]}</Badge>;
}

function Locked({ setting, id }: { setting: SettingView; id: string }) {
  const text = setting.secret ? (setting.value ? "set" : "") : fieldText(setting, setting.value);
  return (
    <>
      <input id={id} class="input" readOnly value={text} aria-describedby={`${id}-more`} />
      <p class="faint">{whyLocked(setting)}</p>
    </>
  );
}

function whyLocked(setting: SettingView): string {
  if (setting.source === "environment") return "Set by an environment variable of the gateway.";
  if (setting.source === "arguments") return "Set by the command that started the gateway.";
  return "It can only be changed in the file.";
}

function RevertButton({ setting, isChanged }: { setting: SettingView; isChanged: boolean }) {
  if (isChanged) {
    return (
      <Button small onClick={() => revert(setting)}>
        Undo
      </Button>
    );
  }
  if (setting.source !== "file" || isLocked(setting)) return null;
  return (
    <Button small onClick={() => reset(setting)}>
      {setting.secret ? "Remove" : "Reset to default"}
    </Button>
  );
}

interface SettingFieldProps {
  setting: SettingView;
  id: string;
  described: string;
  invalid: boolean;
}

/** The field for a setting, by its type. */
function SettingField(props: SettingFieldProps) {
  const { setting } = props;
  if (setting.secret) return <Secret {...props} />;
  if (setting.form === "flag") return <Flag {...props} />;
  if (setting.form === "choice") return <Choice {...props} />;
  return <Text {...props} />;
}

/** Return the edited value of a setting, else the stored one. */
function editedValue(setting: SettingView): unknown {
  const edit = changes.peek()[setting.key];
  return edit === undefined ? setting.value : edit === null ? setting.default : edit;
}

function Secret({ setting, id, described, invalid }: SettingFieldProps) {
  const [text, setText] = useState("");
  const removed = changes.value[setting.key] === null;
  const write = (text: string) => {
    setText(text);
    changeSetting(setting, text || setting.value);
  };
  return (
    <input
      id={id}
      class="input"
      type="password"
      autocomplete="off"
      aria-describedby={described}
      aria-invalid={invalid}
      placeholder={removed ? "will be removed" : setting.value ? "set; type to replace it" : "not set"}
      value={text}
      onInput={(event) => write(event.currentTarget.value)}
    />
  );
}

function Flag({ setting, id, described }: SettingFieldProps) {
  return (
    <input
      id={id}
      type="checkbox"
      class="switch"
      aria-describedby={described}
      checked={Boolean(editedValue(setting))}
      onChange={(event) => changeSetting(setting, event.currentTarget.checked)}
    />
  );
}

function Choice({ setting, id, described, invalid }: SettingFieldProps) {
  return (
    <select
      id={id}
      class="input"
      aria-describedby={described}
      aria-invalid={invalid}
      value={String(editedValue(setting))}
      onChange={(event) => changeSetting(setting, event.currentTarget.value)}
    >
      {setting.choices?.map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}

function Text({ setting, id, described, invalid }: SettingFieldProps) {
  const [text, setText] = useState(() => fieldText(setting, editedValue(setting)));
  const write = (text: string) => {
    setText(text);
    try {
      changeSetting(setting, parseField(setting, text));
    } catch (error) {
      reportInvalid(setting, errorText(error));
    }
  };
  const control = { id, class: "input", "aria-describedby": described, "aria-invalid": invalid, value: text };
  if (setting.form === "list" || setting.form === "table") {
    const hint = setting.form === "list" ? "one per line" : "name = value, one per line";
    return (
      <textarea
        {...control}
        rows={Math.min(Math.max(text.split("\n").length, 2), 8)}
        placeholder={hint}
        spellcheck={false}
        onInput={(event) => write(event.currentTarget.value)}
      />
    );
  }
  const onInput = (event: { currentTarget: HTMLInputElement }) => write(event.currentTarget.value);
  if (setting.form === "time") return <input {...control} type="time" onInput={onInput} />;
  const keys = setting.form === "number" ? "decimal" : "text";
  return <input {...control} type="text" inputmode={keys} autocomplete="off" spellcheck={false} onInput={onInput} />;
}
