import { knock } from "../door/knock.tsx";
import { guest } from "../me.ts";
import { showPalette } from "../palette/shown.ts";
import { place, to } from "../router.ts";
import { IconButton } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { written } from "../ui/keys.ts";
import { Menu } from "../ui/menu.tsx";
import { ownItems } from "./own.ts";

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
      <IconButton icon="command" label={`Commands (${written("mod+k").join(" ")})`} onClick={showPalette} />
      <Menu label="Theme, help and signing in" icon="gear" items={ownItems()} />
    </footer>
  );
}
