import { useRef } from "preact/hooks";
import type { Turn } from "../../journal/view.ts";
import { Icon } from "../../ui/icon.tsx";
import type { Scroller } from "./scroller.ts";

/** A way back to the end, for whoever reads further up; it says when there is something new. */
export function JumpToEnd({ scroller, last }: { scroller: Scroller; last: Turn | undefined }) {
  const seen = useRef(last);
  if (scroller.isAtEnd.value) {
    seen.current = last;
    return null;
  }
  const hasNews = seen.current !== last;
  return (
    <button type="button" class={hasNews ? "jump news" : "jump"} onClick={() => scroller.toEnd()}>
      <Icon name="down" size={16} />
      {hasNews ? "New messages" : "To the end"}
    </button>
  );
}
