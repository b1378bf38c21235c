import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface SectionProps {
  title: string;
  /** Beside the title, at the other end. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of a control page, with its title. */
export function Section({ title, aside, children }: SectionProps) {
  const id = useId();
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
