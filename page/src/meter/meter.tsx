import "./meter.css";
import { useId, useState } from "preact/hooks";
import type { Conversation } from "../journal/conversation.ts";
import type { Used } from "../journal/view.ts";
import { Icon } from "../ui/icon.tsx";
import { brief, figures } from "./figures.ts";

/** What a session has used so far; what of it belongs to the last answer is shown to whoever asks. */
export function Meter({ conversation }: { conversation: Conversation }) {
  const id = useId();
  const [over, setOver] = useState(false);
  const [kept, setKept] = useState(false);
  const whole = conversation.used.value;
  const summary = brief(whole);
  if (!summary) return null;
  const last = conversation.turns.value.findLast((each) => brief(each.used))?.used;
  const open = over || kept;
  const close = () => {
    setOver(false);
    setKept(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: The pointer only shows what the button inside shows as well.
    <div
      class="meter"
      onPointerEnter={(event) => setOver(event.pointerType === "mouse")}
      onPointerLeave={() => setOver(false)}
      onKeyDown={(event) => event.key === "Escape" && close()}
      onFocusOut={close}
    >
      <button
        type="button"
        class="meter-button"
        aria-label={`Used: ${summary}`}
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setKept(!kept)}
      >
        <Icon name="gauge" size={15} />
        <span class="meter-brief">{summary}</span>
      </button>
      <div class="meter-more" id={id} hidden={!open}>
        <Figures title="This conversation" used={whole} />
        {last && <Figures title="The last answer" used={last} />}
      </div>
    </div>
  );
}

function Figures({ title, used }: { title: string; used: Used }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {figures(used).map(({ name, value }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
