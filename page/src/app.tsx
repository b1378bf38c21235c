/** The whole page: the frame, or the sign-in page in front of it. */

import { Frame } from "./frame/frame.tsx";
import { Palette } from "./palette/palette.tsx";
import { Help, helpShown, paletteShown } from "./palette/shortcuts.tsx";
import { access, admissions } from "./sign_in/identity.ts";
import { SignInDialog, SignInPage } from "./sign_in/sign_in.tsx";
import { Toasts } from "./ui/toast.tsx";

export function App() {
  const isOutside = access.value === "outside";
  return (
    <>
      {/* A person who has to sign in again finds their input where it was; a person who never was signed in sees nothing else. */}
      {(!isOutside || admissions.value > 0) && (
        <div class="app" inert={isOutside}>
          <Frame />
        </div>
      )}
      {isOutside && <SignInPage />}
      <SignInDialog />
      {paletteShown.value && <Palette />}
      {helpShown.value && <Help />}
      <Toasts />
    </>
  );
}
