import type { ComponentChildren } from "preact";

interface ScrollableProps {
  /** What is in it, for those who come to it with the keyboard. */
  label: string;
  class: string;
  children: ComponentChildren;
}

/** What may be wider than the column, and is scrolled by itself, also with the keyboard. */
export function Scrollable({ label, class: name, children }: ScrollableProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: A fieldset is for what is filled in.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: It takes the focus so that the arrow keys scroll it.
    <div role="group" class={name} aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
