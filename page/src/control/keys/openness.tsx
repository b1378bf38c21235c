import { Icon } from "../../ui/icon.tsx";
import { Empty } from "../../ui/parts.tsx";
import type { KeyView } from "../../wire.ts";
import { useClosed } from "./closed.ts";
import { opensApi } from "./opening.ts";

/** Say who can use this gateway as it is now. */
export function Openness({ keys }: { keys: readonly KeyView[] }) {
  const closed = useClosed();
  const asked = closed || keys.some(opensApi);
  return (
    <p class="openness" role="note">
      <Icon name={asked ? "shield" : "info"} />
      <span>
        {asked
          ? "Every request needs a key or a signed-in browser. The command line on the gateway’s machine needs none."
          : "Programs on the gateway’s machine can talk and read without a key. The first key with the scope api or admin ends that: from then on every program needs one."}
      </span>
    </p>
  );
}

export function NoKeys() {
  return (
    <Empty icon="key" title="No keys yet">
      Make one for each program, so that each can be revoked by itself. Programs that speak to OpenAI take it as their
      API key.
    </Empty>
  );
}
