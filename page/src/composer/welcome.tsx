import "./welcome.css";
import { sessionOf } from "../activity.ts";
import { status } from "../connection.ts";
import { outgoing } from "../outbox/outbox.ts";
import { outgoingOf } from "../outbox/receipt.ts";
import { to } from "../router.ts";
import { Icon } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";
import { type Example, FOR_DEMONSTRATION, FOR_MODELS } from "./examples.ts";
import { sendText } from "./sending.ts";

/** What a person sees before the first message. */
export function Welcome({ previous }: { previous: string | null }) {
  const agent = status.value?.agent;
  // What was written first is on its way, and stands here in its place.
  if (outgoingOf(outgoing.value, null, null).length) return null;
  return (
    <section class="welcome">
      <img class="welcome-mark" src="/icon.svg" alt="" width={56} height={56} />
      <h1>{greeting(new Date().getHours())}</h1>
      <p class="welcome-text">Ask for anything. No word of it is lost, whatever happens to this page or the gateway.</p>
      {previous && <Previous id={previous} />}
      <div class="welcome-more">
        {agent && <Examples examples={agent.demonstration ? FOR_DEMONSTRATION : FOR_MODELS} previous={previous} />}
        {agent?.demonstration && <Demonstration />}
      </div>
    </section>
  );
}

function greeting(hour: number): string {
  if (hour < 5) return "Hello";
  if (hour < 12) return "Good morning";
  return hour < 18 ? "Good afternoon" : "Good evening";
}

function Examples({ examples, previous }: { examples: readonly Example[]; previous: string | null }) {
  return (
    <ul class="examples" aria-label="Examples">
      {examples.map((each) => (
        <li key={each.title}>
          <button type="button" onClick={() => attempt(() => sendText(each.text, previous))}>
            <Icon name={each.icon} />
            <span class="example-title">{each.title}</span>
            <span class="example-text">{each.text}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Demonstration() {
  return (
    <p class="demonstration">
      <Icon name="info" />
      <span>
        The built-in demonstration answers, which is no model: it shows how everything works.{" "}
        <a href={to.setup()}>Set up a model</a>
      </span>
    </p>
  );
}

function Previous({ id }: { id: string }) {
  const label = sessionOf(id)?.label;
  return (
    <p class="welcome-previous">
      This begins anew after <a href={to.session(id)}>{label ? `“${label}”` : "the last conversation"}</a>, which is
      handed to memory.
    </p>
  );
}
