import { Menu, type MenuItem } from "../ui/menu.tsx";
import { channelOf } from "./channels.ts";
import type { Filter } from "./groups.ts";
import { channels, filter } from "./listing.ts";

/** Which sessions are listed: of one channel or all, and the archive. */
export function SessionFilter() {
  const { channel, archived } = filter.value;
  const name = archived ? "Archive" : channel ? channelOf(channel).name : "All sessions";
  return (
    <div class="session-filter">
      <span>{name}</span>
      <Menu label={`Listed: ${name}. Choose others`} icon="chevron" items={choices()} />
    </div>
  );
}

function choices(): MenuItem[] {
  const ofChannels = channels.value.map((each) => ({ ...channelOf(each), wanted: { channel: each, archived: false } }));
  return [
    choice("All sessions", "menu", { channel: null, archived: false }),
    ...(ofChannels.length > 1 ? ofChannels.map(({ name, icon, wanted }) => choice(name, icon, wanted)) : []),
    choice("Archive", "archive", { channel: null, archived: true }),
  ];
}

function choice(label: string, icon: MenuItem["icon"], wanted: Filter): MenuItem {
  const isChosen = filter.value.channel === wanted.channel && filter.value.archived === wanted.archived;
  return {
    label,
    icon: isChosen ? "check" : icon,
    onSelect: () => {
      filter.value = wanted;
    },
  };
}
