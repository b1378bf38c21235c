import { Dialog } from "../ui/dialog.tsx";
import { Keys } from "./pressed.tsx";
import { SHORTCUTS } from "./shortcuts.ts";
import { hideHelp } from "./shown.ts";
import "./palette.css";

/** What the keys do that belong to one part of the page. */
const ELSEWHERE = [
  { keys: "enter", label: "Send the message" },
  { keys: "shift+enter", label: "New line in the message" },
  { keys: "mod+enter", label: "Steer what is running with the message" },
  { keys: "arrowup", label: "Your last message again, in an empty field" },
  { keys: "f2", label: "Rename the session that has the focus in the list" },
  { keys: "delete", label: "Delete it; it can be undone" },
  { keys: "escape", label: "Stop the answer, in an empty field; close what lies over the page" },
];

/** All shortcuts. */
export function Help() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={hideHelp}>
      <dl class="help">
        {[...SHORTCUTS, ...ELSEWHERE].map(({ keys, label }) => (
          <div key={keys}>
            <dt>{label}</dt>
            <dd>
              <Keys keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
