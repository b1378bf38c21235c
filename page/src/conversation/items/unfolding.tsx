import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { Icon } from "../../ui/icon.tsx";

interface UnfoldingProps {
  class: string;
  isOpen: boolean;
  onTurn: (isOpen: boolean) => void;
  /** The line that is always there. */
  head: ComponentChildren;
  children: ComponentChildren;
}

/** A line that opens to show the rest. */
export function Unfolding({ class: name, isOpen, onTurn, head, children }: UnfoldingProps) {
  const id = useId();
  return (
    <div class={name}>
      <button
        type="button"
        class="unfolds"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => onTurn(!isOpen)}
      >
        {head}
        <span class={isOpen ? "chevron open" : "chevron"}>
          <Icon name="chevron" size={14} />
        </span>
      </button>
      {isOpen && (
        <div class="unfolded" id={id}>
          {children}
        </div>
      )}
    </div>
  );
}
