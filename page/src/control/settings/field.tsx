import { useState } from "preact/hooks";
import { told } from "../../api.ts";
import type { SettingView } from "../../wire.ts";
import { change, changes, object } from "./draft.ts";
import { read, written } from "./value.ts";

interface SettingFieldProps {
  setting: SettingView;
  id: string;
  described: string;
  invalid: boolean;
}

/** What a setting is changed with, by what it is made of. */
export function SettingField(props: SettingFieldProps) {
  const { setting } = props;
  if (setting.secret) return <Secret {...props} />;
  if (setting.form === "flag") return <Flag {...props} />;
  if (setting.form === "choice") return <Choice {...props} />;
  return <Text {...props} />;
}

/** What a setting is to be: as it was changed, else as it is. */
function wantedOf(setting: SettingView): unknown {
  const wanted = changes.peek()[setting.key];
  return wanted === undefined ? setting.value : wanted === null ? setting.default : wanted;
}

function Secret({ setting, id, described, invalid }: SettingFieldProps) {
  const [text, setText] = useState("");
  const removed = changes.value[setting.key] === null;
  const write = (text: string) => {
    setText(text);
    change(setting, text || setting.value);
  };
  return (
    <input
      id={id}
      class="input"
      type="password"
      autocomplete="off"
      aria-describedby={described}
      aria-invalid={invalid}
      placeholder={removed ? "will be removed" : setting.value ? "set; write another to replace it" : "not set"}
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
      checked={Boolean(wantedOf(setting))}
      onChange={(event) => change(setting, event.currentTarget.checked)}
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
      value={String(wantedOf(setting))}
      onChange={(event) => change(setting, event.currentTarget.value)}
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
  const [text, setText] = useState(() => written(setting, wantedOf(setting)));
  const write = (text: string) => {
    setText(text);
    try {
      change(setting, read(setting, text));
    } catch (error) {
      object(setting, told(error));
    }
  };
  const control = { id, class: "input", "aria-describedby": described, "aria-invalid": invalid, value: text };
  if (setting.form === "list" || setting.form === "table") {
    const hint = setting.form === "list" ? "one on each line" : "name = value, one on each line";
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
