import type { ComponentChildren, JSX } from "preact";
import { Icon, type IconName } from "./icon.tsx";

type Native = Omit<JSX.IntrinsicElements["button"], "class" | "icon">;

interface ButtonProps extends Native {
  /** `main` is the primary action, `bad` one that cannot be undone, `quiet` everything else. */
  look?: "main" | "quiet" | "bad";
  icon?: IconName;
  small?: boolean;
  children?: ComponentChildren;
}

export function Button({ look = "quiet", icon, small, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button ${look}${small ? " small" : ""}`}>
      {icon && <Icon name={icon} size={small ? 15 : 17} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Native {
  icon: IconName;
  /** The accessible name, also shown as the tooltip. */
  label: string;
  size?: number;
}

export function IconButton({ icon, label, size, ...rest }: IconButtonProps) {
  return (
    <button type="button" {...rest} class="icon-button" aria-label={label} title={label}>
      <Icon name={icon} {...(size ? { size } : {})} />
    </button>
  );
}
