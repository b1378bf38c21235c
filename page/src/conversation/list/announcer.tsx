import { useEffect, useRef, useState } from "preact/hooks";
import type { Turn } from "../../journal/view.ts";
import { isOver, openQuestion } from "../../turns/standing.ts";
import { answerOf } from "../items/actions.tsx";

const SAID_MAX_CHARS = 2_000;

/** Tells those who listen what has happened: whole answers and questions, never single words. */
export function Announcer({ turn }: { turn: Turn | undefined }) {
  const [said, setSaid] = useState("");
  const before = useRef<{ id: string; isOver: boolean; asked: string } | null>(null);
  useEffect(() => {
    if (!turn) return;
    const asked = openQuestion(turn)?.text ?? "";
    const was = before.current;
    before.current = { id: turn.id, isOver: isOver(turn), asked };
    // What was there when the page came is read, not announced.
    if (!was || (was.id !== turn.id && !asked)) return;
    if (asked && asked !== was.asked) setSaid(`A question for you: ${asked}`);
    else if (isOver(turn) && !was.isOver) setSaid(ended(turn).slice(0, SAID_MAX_CHARS));
  }, [turn]);
  return (
    <div class="unseen" role="status" aria-live="polite">
      {said}
    </div>
  );
}

function ended(turn: Turn): string {
  const marker = turn.items.findLast((item) => item.role === "marker");
  return turn.state === "completed" ? answerOf(turn) : (marker?.text ?? "");
}
