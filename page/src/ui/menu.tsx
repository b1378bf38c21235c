import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

export interface MenuItem {
  label: string;
  icon: IconName;
  bad?: boolean;
  onSelect: () => void;
}

/** The distance of a menu from its button, and from the edges of the window. */
const GAP = 4;
const MARGIN = 8;

/** A button that opens a menu; arrow keys move in it, Escape closes it. */
export function Menu({ label, icon = "more", items }: { label: string; icon?: IconName; items: readonly MenuItem[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    if (!open || !root.current) return;
    placeList(root.current);
    root.current.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const away = (event: Event) => root.current?.contains(event.target as Node) || setOpen(false);
    const moved = (event: Event) => {
      if (root.current && (event.target as Node).contains(root.current)) placeList(root.current);
    };
    document.addEventListener("pointerdown", away);
    document.addEventListener("scroll", moved, { capture: true });
    return () => {
      document.removeEventListener("pointerdown", away);
      document.removeEventListener("scroll", moved, { capture: true });
    };
  }, [open]);
  const close = () => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The keys are those of the menu and its button, which are inside.
    <div class="menu" ref={root} onKeyDown={(event) => open && moveFocus(event, close)}>
      <IconButton
        icon={icon}
        label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <div class="menu-list" role="menu" id={id} aria-label={label}>
          {items.map((item) => (
            <button
              type="button"
              role="menuitem"
              key={item.label}
              class={item.bad ? "menu-item bad" : "menu-item"}
              onClick={() => {
                close();
                item.onSelect();
              }}
            >
              <Icon name={item.icon} size={16} />
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Place the menu below its button or above, always within the window. */
function placeList(root: HTMLElement): void {
  const button = root.querySelector("button")!.getBoundingClientRect();
  const list = root.querySelector<HTMLElement>(".menu-list")!;
  const { width, height } = list.getBoundingClientRect();
  const below = button.bottom + GAP;
  const top = below + height + MARGIN > innerHeight ? button.top - GAP - height : below;
  list.style.top = `${Math.max(MARGIN, top)}px`;
  list.style.left = `${Math.max(MARGIN, Math.min(button.right, innerWidth - MARGIN) - width)}px`;
}

function moveFocus(event: KeyboardEvent, close: () => void): void {
  const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=menuitem]")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (next !== undefined) items.at(next % items.length)?.focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  if (event.key !== "Tab") event.preventDefault();
  event.stopPropagation();
}
