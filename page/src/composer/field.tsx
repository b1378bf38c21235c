import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Writing } from "./writing.ts";

type Native = Omit<JSX.IntrinsicElements["textarea"], "value" | "ref" | "class">;

/** Where one writes: as high as the text, up to a part of the window. */
export function GrowingField({ writing, ...rest }: { writing: Writing } & Native) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = writing.text.value;
  const called = writing.called.value;
  useLayoutEffect(() => grow(field.current), [text]);
  // Before the page is painted, so that no key is lost to whoever writes on.
  useLayoutEffect(() => takeFocus(field.current, called > 0), [writing, called]);
  return <textarea {...rest} ref={field} class="composer-field" dir="auto" rows={1} value={text} />;
}

function grow(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** On a phone the focus brings the keyboard up, which nobody wants who came to read. */
function takeFocus(field: HTMLTextAreaElement | null, called: boolean): void {
  if (!field || (!called && isTouched())) return;
  field.focus({ preventScroll: true });
  field.setSelectionRange(field.value.length, field.value.length);
}

export const isTouched = () => matchMedia("(pointer: coarse)").matches;
