/** The whole page: the house, and the door in front of it. */

import { Frame } from "./frame/frame.tsx";
import { Palette } from "./palette/palette.tsx";
import { Help, helpShown, paletteShown } from "./palette/shortcuts.tsx";
import { returned, standing } from "./sign_in/identity.ts";
import { Door, Knock } from "./sign_in/sign_in.tsx";
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
