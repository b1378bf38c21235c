/** Whether the configuration asks for a key or a password, whatever keys there are. */

import { useLoaded } from "../../ui/load.ts";
import type { SettingsView } from "../../wire.ts";

const ASKING = ["server.api_key", "server.password"];

export function useClosed(): boolean {
  const [settings] = useLoaded<SettingsView>("/api/settings");
  const items = settings.value.value?.items ?? [];
  return items.some((each) => ASKING.includes(each.key) && Boolean(each.value));
}
