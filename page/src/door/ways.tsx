import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { told } from "../api.ts";
import { signIn } from "../me.ts";
import { Button } from "../ui/button.tsx";
import { useLoaded } from "../ui/load.ts";
import { Command, Field } from "../ui/parts.tsx";
import type { Ways } from "../wire.ts";
import "./door.css";

/** How one can sign in: with the password, where there is one, and always with a link. */
export function WaysIn() {
  const [ways] = useLoaded<Ways>("/api/sign-in");
  const hasPassword = ways.value.value?.password ?? false;
  return (
    <>
      {!isSecureContext && (
        <p class="door-problem" role="note">
          This address is not encrypted. Others on the network can read along, and can take over your sign-in. Use
          https, or a tunnel to 127.0.0.1.
        </p>
      )}
      {hasPassword && <PasswordForm />}
      <div class="door-link">
        <p>
          {hasPassword ? "Or get" : "Get"} a link on the machine where the gateway runs, and open it in this browser:
        </p>
        <Command text="holdfast link" />
        <p class="door-small">A link is good once, for fifteen minutes.</p>
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
      setRefusal(told(error));
      field.current?.select();
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="door-form" onSubmit={submit}>
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
