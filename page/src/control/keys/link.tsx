import { useState } from "preact/hooks";
import { post } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Command, Time } from "../../ui/parts.tsx";
import { attempt } from "../../ui/toast.tsx";
import type { SignInLink as Link } from "../../wire.ts";

/** Makes a link that signs another browser in. */
export function SignInLink() {
  const [link, setLink] = useState<Link | null>(null);
  const make = async () => setLink((await attempt(() => post<Link>("/api/sign-in/link"))) ?? null);
  return (
    <>
      <Button icon="link" onClick={make}>
        Sign another browser in
      </Button>
      {link && (
        <Dialog title="Sign another browser in" onClose={() => setLink(null)}>
          <p>
            Open this address there. It is good once, until <Time at={link.expires_at} />, and whoever opens it can do
            everything that you can.
          </p>
          <Command text={reachable(link.url)} />
        </Dialog>
      )}
    </>
  );
}

/** The gateway names the address it listens on; the other browser reaches it as this one did. */
const reachable = (url: string) => `${location.origin}/${new URL(url).hash}`;
