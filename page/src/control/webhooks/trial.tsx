import { useState } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { useDoing } from "../../ui/doing.ts";
import { Field } from "../../ui/parts.tsx";
import type { RouteView } from "../../wire.ts";
import { Trouble } from "../parts/trouble.tsx";
import { Outcome } from "./outcome.tsx";
import { sample } from "./sample.ts";
import { type Handed, handIn } from "./sending.ts";

/** A delivery that is made up here, signed, sent to the route, and followed to its answer. */
export function Trial({ route }: { route: RouteView }) {
  const [body, setBody] = useState(() => JSON.stringify(sample(route), null, 2));
  const [handed, setHanded] = useState<Handed | null>(null);
  const { busy, problem, run } = useDoing();
  const send = async (event: Event) => {
    event.preventDefault();
    setHanded((await run(() => handIn(route, body))) ?? null);
  };
  return (
    <form class="route-trial" onSubmit={send}>
      <Field
        label="What is sent"
        hint="It is signed with the route’s secret and sent to its address, as its sender would."
      >
        {(control) => (
          <textarea
            {...control}
            rows={Math.min(Math.max(body.split("\n").length, 4), 16)}
            spellcheck={false}
            value={body}
            onInput={(event) => setBody(event.currentTarget.value)}
          />
        )}
      </Field>
      {!route.enabled && <p class="faint">The route is paused, and takes nothing until it is resumed.</p>}
      <div>
        <Button type="submit" icon="send" disabled={busy.value || !route.enabled || !body.trim()}>
          {busy.value ? "Sending…" : "Send a delivery"}
        </Button>
      </div>
      {problem.value !== undefined && <Trouble error={problem.value} />}
      {handed && <Outcome key={handed.taken.delivery_id} handed={handed} />}
    </form>
  );
}
