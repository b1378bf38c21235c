/** Lazy loading of parts of the page. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { Problem, Spinner } from "./parts.tsx";

/** The spinner appears after this delay; most parts load faster. */
const SPINNER_AFTER_MS = 250;

type Part<P> = ComponentType<P>;

/** Return a component that is loaded when it is first shown. */
export function lazy<P extends object>(load: () => Promise<Part<P>>): Part<P> {
  const part = signal<Part<P> | null>(null);
  const problem = signal<unknown>(null);
  const slow = signal(false);
  const fetchPart = async () => {
    problem.value = null;
    try {
      part.value = await load();
    } catch {
      problem.value = new Error("This part of the page could not be loaded. The gateway is away, or was updated.");
    }
  };
  return function Lazy(props: P) {
    useEffect(() => {
      if (part.peek()) return;
      fetchPart();
      const timer = setTimeout(() => {
        slow.value = true;
      }, SPINNER_AFTER_MS);
      return () => clearTimeout(timer);
    }, []);
    const Part = part.value;
    if (Part) return <Part {...props} />;
    // Browsers remember a failed import, so only a reload retries it.
    if (problem.value) {
      return (
        <div class="absent">
          <Problem error={problem.value} onRetry={() => location.reload()} />
        </div>
      );
    }
    return slow.value ? <Spinner /> : null;
  };
}
