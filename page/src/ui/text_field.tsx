import type { ComponentChildren } from "preact";
import { Field } from "./parts.tsx";

interface TextFieldProps {
  label: string;
  hint?: ComponentChildren;
  required?: boolean;
  maxLength?: number;
  /** Which keys a phone shows. */
  inputMode?: "numeric";
  pattern?: string;
  /** What the pattern asks for. */
  title?: string;
  placeholder?: string;
  value: string;
  onInput: (value: string) => void;
}

/** A line of text with its name.  It is a name, an address or a number: nothing to be completed or corrected. */
export function TextField({ label, hint, value, onInput, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          autocomplete="off"
          spellcheck={false}
          {...rest}
          {...control}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
