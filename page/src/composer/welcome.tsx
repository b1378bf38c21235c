/** What a new conversation shows before the first message. */

import "./welcome.css";
import { status } from "../connection.ts";
import { outgoingOf } from "../outbox/list.tsx";
import { outgoing } from "../outbox/outbox.ts";
import { to } from "../router.ts";
import { sessionOf } from "../sessions/store.ts";
import { Icon, type IconName } from "../ui/icon.tsx";
import { attempt } from "../ui/toast.tsx";
import { sendText } from "./sending.ts";

/** The welcome of a new conversation. */
export function Welcome({ previous }: { previous: string | null }) {
  const agent = status.value?.agent;
  // The first message is on its way, and takes the place of the welcome.
  if (outgoingOf(outgoing.value, null, null).length) return null;
  return (
    <section class="welcome">
      <img class="welcome-mark" src="/icon.svg" alt="" width={56} height={56} />
      <h1>{greeting(new Date().getHours())}</h1>
      <p class="welcome-text">Ask for anything. Nothing is lost, even if this page or the gateway stops.</p>
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
        This is a demo, not an AI. Connect a model to chat for real. <a href={to.setup()}>Set up a model</a>
      </span>
    </p>
  );
}

function Previous({ id }: { id: string }) {
  const label = sessionOf(id)?.label;
  return (
    <p class="welcome-previous">
      This continues after <a href={to.session(id)}>{label ? `“${label}”` : "the last conversation"}</a>, which is saved
      to memory.
    </p>
  );
}

interface Example {
  icon: IconName;
  title: string;
  text: string;
}

/** The demonstration understands these; each shows another feature. */
const FOR_DEMONSTRATION: readonly Example[] = [
  { icon: "play", title: "Watch an answer stream", text: "count to 40, slowly" },
  { icon: "question", title: "Get a question", text: "ask me which harbour is the most beautiful" },
  { icon: "terminal", title: "Run a command", text: "run: ls" },
  { icon: "branch", title: "Delegate a task", text: "delegate: count to 5" },
];

const FOR_MODELS: readonly Example[] = [
  { icon: "info", title: "See what it can do", text: "What can you do on this machine? List your tools, briefly." },
  { icon: "file", title: "Look around", text: "Look at the files in the workspace and tell me what they are about." },
  { icon: "clock", title: "Plan ahead", text: "Remind me every weekday at 9:00 to plan the day." },
  {
    icon: "brain",
    title: "Let it remember",
    text: "Remember that I like short answers. Then tell me what you know about me.",
  },
];
