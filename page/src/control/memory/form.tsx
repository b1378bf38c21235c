import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { told } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/parts.tsx";

interface FactFormProps {
  label: string;
  text: string;
  verb: string;
  hint?: string;
  /** Throws what is wrong with it, which is shown beside the text. */
  onSave: (text: string) => Promise<void>;
  onCancel: () => void;
}

/** A text that is to be remembered.  Enter saves it, Escape leaves it as it was. */
export function FactForm({ label, text, verb, hint, onSave, onCancel }: FactFormProps) {
  const [written, setWritten] = useState(text);
  const [problem, setProblem] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => area.current?.focus(), []);
  const save = (event: Event) => {
    event.preventDefault();
    if (!written.trim()) return;
    onSave(written).catch((error) => setProblem(told(error)));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) save(event);
  };
  return (
    <form class="memory-form" onSubmit={save}>
      <Field label={label} hint={hint} problem={problem || undefined}>
        {(control) => (
          <textarea
            {...control}
            ref={area}
            rows={2}
            value={written}
            onInput={(event) => setWritten(event.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
        )}
      </Field>
      <div class="memory-row">
        <Button type="submit" look="main" small disabled={!written.trim()}>
          {verb}
        </Button>
        <Button small onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
