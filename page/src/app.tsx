/** The whole page: the house, and the door in front of it. */

import { Door } from "./door/door.tsx";
import { Knock } from "./door/knock.tsx";
import { Frame } from "./frame/frame.tsx";
import { returned, standing } from "./me.ts";
import { Help } from "./palette/help.tsx";
import { Palette } from "./palette/palette.tsx";
import { helpShown, paletteShown } from "./palette/shown.ts";
import { Toasts } from "./ui/toast.tsx";

export function App() {
  const isOutside = standing.value === "outside";
  return (
    <>
      {/* Whoever has to sign in again finds what they typed where it was; nobody else sees the house. */}
      {(!isOutside || returned.value > 0) && (
        <div class="house" inert={isOutside}>
          <Frame />
        </div>
      )}
      {isOutside && <Door />}
      <Knock />
      {paletteShown.value && <Palette />}
      {helpShown.value && <Help />}
      <Toasts />
    </>
  );
}
