import { useEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../../journal/conversation.ts";
import { Button } from "../../ui/button.tsx";
import { Spinner } from "../../ui/parts.tsx";
import { tellProblem } from "../../ui/toast.tsx";

interface OlderProps {
  conversation: Conversation;
  /** Whether the reader is near enough to the top to want more. */
  isWanted: () => boolean;
  scroller: HTMLElement | null;
}

/** What stands above the first turn that is loaded: older ones come by themselves when somebody reads on upwards. */
export function Older({ conversation, isWanted, scroller }: OlderProps) {
  const [hasFailed, setFailed] = useState(false);
  const state = conversation.older.value;
  const look = useRef(() => {});
  look.current = () => {
    if (state === "more" && !hasFailed && isWanted()) load();
  };
  const load = () => {
    setFailed(false);
    conversation.loadOlder().catch((error: unknown) => {
      setFailed(true);
      tellProblem(error);
    });
  };
  useEffect(() => {
    look.current();
  });
  useEffect(() => {
    const scrolled = () => look.current();
    scroller?.addEventListener("scroll", scrolled, { passive: true });
    return () => scroller?.removeEventListener("scroll", scrolled);
  }, [scroller]);
  if (state === "none") return null;
  return (
    <div class="older">
      {state === "loading" ? (
        <Spinner label="Loading older messages" />
      ) : (
        <Button small onClick={load}>
          Load older messages
        </Button>
      )}
    </div>
  );
}
