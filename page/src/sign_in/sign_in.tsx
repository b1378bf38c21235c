/** Signing in: the page that stands in front of everything, and the dialog for guests. */

import "./sign_in.css";
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../api.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Command, Field } from "../ui/parts.tsx";
import { useLoaded } from "../ui/requests.ts";
import type { Ways } from "../wire.ts";
import { isGuest, signIn, signInProblem } from "./identity.ts";

/** The sign-in page.  Input in the page behind it stays there. */
export function SignInPage() {
  return (
    <main class="sign-in" aria-labelledby="sign-in-title">
      <div class="sign-in-card">
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1 id="sign-in-title">Sign in to Holdfast</h1>
        {signInProblem.value ? (
          <p class="sign-in-problem" role="alert">
            {errorText(signInProblem.value)}
          </p>
        ) : null}
        <SignInOptions />
      </div>
    </main>
  );
}

const isDialogOpen = signal(false);

/** Open the sign-in dialog. */
export const openSignIn = () => {
  isDialogOpen.value = true;
};

/** The sign-in dialog, for guests who already use the page. */
export function SignInDialog() {
  if (!isDialogOpen.value || !isGuest.value) return null;
  const close = () => {
    isDialogOpen.value = false;
  };
  return (
    <Dialog title="Sign in" onClose={close}>
      <p>On this machine you can chat and read without signing in. Sign in to change settings and approve commands.</p>
      <SignInOptions />
    </Dialog>
  );
}

/** The ways to sign in: a password if one is set, and always a link. */
function SignInOptions() {
  const [options] = useLoaded<Ways>("/api/sign-in");
  const hasPassword = options.value.value?.password ?? false;
  return (
    <>
      {!isSecureContext && (
        <p class="sign-in-problem" role="note">
          This address is not encrypted. Others on the network can read what you send and take over your sign-in. Use
          https, or a tunnel to 127.0.0.1.
        </p>
      )}
      {hasPassword && <PasswordForm />}
      <div class="sign-in-link">
        <p>
          {hasPassword ? "Or get" : "Get"} a link on the machine where the gateway runs, and open it in this browser:
        </p>
        <Command text="holdfast link" />
        <p class="sign-in-small">A link works once, for fifteen minutes.</p>
      </div>
    </>
  );
}

function PasswordForm() {
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn({ password: field.current?.value ?? "" });
    } catch (error) {
      setRefusal(errorText(error));
      field.current?.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="sign-in-form" onSubmit={submit}>
      <Field label="Password" problem={refusal || undefined}>
        {(control) => (
          <input
            {...control}
            ref={field}
            type="password"
            autocomplete="current-password"
            maxLength={1000}
            required
            onInput={() => setRefusal("")}
          />
        )}
      </Field>
      <Button look="main" type="submit" disabled={busy}>
        Sign in
      </Button>
    </form>
  );
}
