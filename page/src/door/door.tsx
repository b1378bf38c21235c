import { told } from "../api.ts";
import { problem } from "../me.ts";
import { WaysIn } from "./ways.tsx";

/** Where somebody signs in.  What was typed in the page behind it stays there. */
export function Door() {
  return (
    <main class="door" aria-labelledby="door-title">
      <div class="door-card">
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1 id="door-title">Sign in to Holdfast</h1>
        {problem.value ? (
          <p class="door-problem" role="alert">
            {told(problem.value)}
          </p>
        ) : null}
        <WaysIn />
      </div>
    </main>
  );
}
