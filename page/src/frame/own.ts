/** What somebody can set for this browser alone. */

import { knock } from "../door/knock.tsx";
import { leave } from "../door/leaving.ts";
import { guest, me } from "../me.ts";
import { showHelp } from "../palette/shown.ts";
import { setTheme, THEMES, type Theme, theme } from "../theme.ts";
import type { MenuItem } from "../ui/menu.tsx";
import { attempt } from "../ui/toast.tsx";

const LOOKS: Record<Theme, Pick<MenuItem, "label" | "icon">> = {
  system: { label: "Theme of the system", icon: "gear" },
  light: { label: "Light theme", icon: "sun" },
  dark: { label: "Dark theme", icon: "moon" },
};

export function ownItems(): MenuItem[] {
  return [
    ...THEMES.map(themeItem),
    { label: "Keyboard shortcuts", icon: "question", onSelect: showHelp },
    ...(me.value ? [guest.value ? entering : leaving] : []),
  ];
}

const leaving: MenuItem = { label: "Sign out", icon: "signout", onSelect: () => attempt(leave) };
const entering: MenuItem = { label: "Sign in", icon: "key", onSelect: knock };

function themeItem(each: Theme): MenuItem {
  const { label, icon } = LOOKS[each];
  return { label, icon: theme.value === each ? "check" : icon, onSelect: () => setTheme(each) };
}
