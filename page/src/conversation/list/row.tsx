import { useLayoutEffect, useRef } from "preact/hooks";
import { clockTime } from "../../format.ts";
import type { Turn } from "../../journal/view.ts";
import { kept } from "../../ui/kept.tsx";
import { TurnBody } from "../turn.tsx";
import { dayName } from "./days.ts";

interface RowProps {
  turn: Turn;
  place: number;
  startsDay: boolean;
  isFlashing: boolean;
  /** Says how tall it is, now and whenever that changes; returns what ends it. */
  measure: (element: HTMLElement) => () => void;
}

/** One turn in the list. */
export const Row = kept(({ turn, place, startsDay, isFlashing, measure }: RowProps) => {
  const element = useRef<HTMLElement>(null);
  useLayoutEffect(() => measure(element.current!), [measure]);
  return (
    <article
      ref={element}
      class={isFlashing ? "turn flashing" : "turn"}
      data-turn={turn.id}
      tabIndex={-1}
      aria-posinset={place}
      aria-setsize={-1}
      aria-label={`Exchange of ${clockTime(turn.acceptedAt)}`}
    >
      {startsDay && <p class="day">{dayName(turn.acceptedAt)}</p>}
      <TurnBody turn={turn} />
    </article>
  );
});
