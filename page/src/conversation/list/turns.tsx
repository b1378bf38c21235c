import { useLayoutEffect } from "preact/hooks";
import type { Turn } from "../../journal/view.ts";
import { isSameDay } from "./days.ts";
import { Row } from "./row.tsx";
import type { Scroller } from "./scroller.ts";

interface TurnsProps {
  turns: readonly Turn[];
  scroller: Scroller;
  flashing: string | null;
  isLoading: boolean;
}

/** The turns that are in sight and near it, with empty room in place of the others. */
export function Turns({ turns, scroller, flashing, isLoading }: TurnsProps) {
  const { from, to, above, below } = scroller.layOut(turns);
  useLayoutEffect(() => scroller.settle());
  return (
    <div class="feed" role="feed" aria-busy={isLoading} aria-label="Messages">
      <div class="room" style={{ height: `${above}px` }} />
      {turns.slice(from, to).map((turn, index) => (
        <Row
          key={turn.id}
          turn={turn}
          place={from + index + 1}
          startsDay={startsDay(turns, from + index)}
          isFlashing={turn.id === flashing}
          measure={scroller.measure}
        />
      ))}
      <div class="room" style={{ height: `${below}px` }} />
    </div>
  );
}

function startsDay(turns: readonly Turn[], index: number): boolean {
  const before = turns[index - 1];
  return !before || !isSameDay(before.acceptedAt, turns[index]!.acceptedAt);
}
