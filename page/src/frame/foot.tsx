import { knock } from "../door/knock.tsx";
import { guest, me, signOut } from "../me.ts";
import { showHelp, showPalette } from "../palette/shown.ts";
import { place, to } from "../router.ts";
import { setTheme, THEMES, type Theme, theme } from "../theme.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon, type IconName } from "../ui/icon.tsx";
import { Menu, type MenuItem } from "../ui/menu.tsx";
import { attempt } from "../ui/toast.tsx";

const LOOKS: Record<Theme, { label: string; icon: IconName }> = {
  system: { label: "Theme of the system", icon: "gear" },
  light: { label: "Light theme", icon: "sun" },
  dark: { label: "Dark theme", icon: "moon" },
};

/** Below the sessions: the gateway itself, and this browser. */
export function Foot() {
  return (
    <footer class="sidebar-foot">
      <a
        class="foot-link"
        href={to.control("status")}
        aria-current={place.value.name === "control" ? "page" : undefined}
      >
        <Icon name="gauge" size={17} />
        Gateway
      </a>
      {guest.value && (
        <button type="button" class="foot-guest" title="Sign in to do more than talk and read" onClick={knock}>
          Guest
        </button>
      )}
      <IconButton icon="search" label="Commands (Ctrl K)" onClick={showPalette} />
      <Menu label="Theme, help and signing out" icon="gear" items={items()} />
    </footer>
  );
}

function items(): MenuItem[] {
  const themes = THEMES.map((each) => ({
    label: LOOKS[each].label,
    icon: theme.value === each ? ("check" as const) : LOOKS[each].icon,
    onSelect: () => setTheme(each),
  }));
  const leaving: MenuItem = { label: "Sign out", icon: "signout", onSelect: () => attempt(signOut) };
  const entering: MenuItem = { label: "Sign in", icon: "key", onSelect: knock };
  return [
    ...themes,
    { label: "Keyboard shortcuts", icon: "question", onSelect: showHelp },
    ...(me.value ? [guest.value ? entering : leaving] : []),
  ];
}
