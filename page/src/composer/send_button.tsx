import { Button } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Menu } from "../ui/menu.tsx";
import type { Way } from "./ways.ts";

interface SendButtonProps {
  ways: readonly [Way, ...Way[]];
  ready: boolean;
  /** Given while something runs that can be stopped, and there is nothing to send. */
  onStop: (() => void) | null;
  onSend: (way: Way) => void;
}

/** Sends; stops, while there is nothing to send; and offers a choice while something runs. */
export function SendButton({ ways: [main, ...others], ready, onStop, onSend }: SendButtonProps) {
  if (onStop) return <RoundButton icon="stop" label="Stop" onClick={onStop} />;
  if (!others.length) {
    return <RoundButton icon={main.icon} label={main.label} disabled={!ready} onClick={() => onSend(main)} />;
  }
  const items = others.map((way) => ({
    label: `${way.label}: ${way.about.toLowerCase()}`,
    icon: way.icon,
    onSelect: () => onSend(way),
  }));
  return (
    <div class="split-button">
      <Button look="main" icon={main.icon} title={main.about} disabled={!ready} onClick={() => onSend(main)}>
        {main.label}
      </Button>
      {ready && <Menu label="Other ways to send" icon="chevron" items={items} />}
    </div>
  );
}

interface RoundButtonProps {
  icon: IconName;
  label: string;
  disabled?: boolean;
  onClick: () => void;
}

function RoundButton({ icon, label, ...rest }: RoundButtonProps) {
  return (
    <button type="button" {...rest} class={`round-button ${icon}`} aria-label={label} title={label}>
      <Icon name={icon} />
    </button>
  );
}
