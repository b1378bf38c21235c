/** The menu of this browser: theme, help, signing in and signing out. */

import { clearAllDrafts } from "../composer/drafts.ts";
import { discard, outgoing } from "../outbox/outbox.ts";
import { showHelp } from "../palette/shortcuts.tsx";
import { isGuest, me, signOut } from "../sign_in/identity.ts";
import { openSignIn } from "../sign_in/sign_in.tsx";
import { setTheme, THEMES, type Theme, theme } from "../theme.ts";
import type { MenuItem } from "../ui/menu.tsx";
import { attempt } from "../ui/toast.tsx";

const THEME_ITEMS: Record<Theme, Pick<MenuItem, "label" | "icon">> = {
  system: { label: "System theme", icon: "gear" },
  light: { label: "Light theme", icon: "sun" },
  dark: { label: "Dark theme", icon: "moon" },
};

export function userMenuItems(): MenuItem[] {
  return [
    ...THEMES.map(themeItem),
    { label: "Keyboard shortcuts", icon: "question", onSelect: showHelp },
    ...(me.value ? [isGuest.value ? signInItem : signOutItem] : []),
  ];
}

const signOutItem: MenuItem = { label: "Sign out", icon: "signout", onSelect: () => attempt(signOutAndClear) };
const signInItem: MenuItem = { label: "Sign in", icon: "key", onSelect: openSignIn };

function themeItem(each: Theme): MenuItem {
  const { label, icon } = THEME_ITEMS[each];
  return { label, icon: theme.value === each ? "check" : icon, onSelect: () => setTheme(each) };
}

/** Sign out, and delete what this browser stored.  Throws while an unsent message would be lost. */
async function signOutAndClear(): Promise<void> {
  if (outgoing.value.some((each) => each.state !== "accepted")) {
    throw new Error("A message has not been sent yet. Wait until it has, or discard it, then sign out.");
  }
  await signOut();
  await Promise.all(outgoing.value.map((each) => discard(each.key)));
  clearAllDrafts();
  // The reload clears the memory of the page.
  location.reload();
}
