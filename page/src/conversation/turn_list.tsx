/** The turns of a conversation: those near the viewport, each with its items. */

import "./items/items.css";
import { useLayoutEffect, useRef } from "preact/hooks";
import { clockTime, dayName, isSameDay } from "../format.ts";
import type { Item, Turn } from "../journal/view.ts";
import { isOver } from "../turns/status.ts";
import { ErrorBoundary, memo } from "../ui/parts.tsx";
import type { TurnState } from "../wire.ts";
import { Call } from "./items/call.tsx";
import { Message, PriorMessage } from "./items/message.tsx";
import { Marker, Note } from "./items/notes.tsx";
import { Progress, Reasoning } from "./items/progress.tsx";
import { Question } from "./items/question.tsx";
import { Actions } from "./items/turn_actions.tsx";
import { Markdown } from "./markdown/markdown.tsx";
import type { Scroller } from "./scroller.ts";

interface TurnsProps {
  turns: readonly Turn[];
  scroller: Scroller;
  flashing: string | null;
  isLoading: boolean;
}

/** The turns near the viewport, with empty space in place of the others. */
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

interface RowProps {
  turn: Turn;
  place: number;
  startsDay: boolean;
  isFlashing: boolean;
  /** Reports its height now and on every change; returns the function that stops it. */
  measure: (element: HTMLElement) => () => void;
}

/** One turn in the list. */
const Row = memo(({ turn, place, startsDay, isFlashing, measure }: RowProps) => {
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
      aria-label={`Turn at ${clockTime(turn.acceptedAt)}`}
    >
      {startsDay && <p class="day">{dayName(turn.acceptedAt)}</p>}
      <TurnBody turn={turn} />
    </article>
  );
});

/** The items of a turn. */
const TurnBody = memo(({ turn }: { turn: Turn }) => {
  const items = turn.items.filter((item) => !isShownAsQuestion(item, turn));
  return (
    <>
      {items.map((item, index) => (
        <div key={item.key} class={item.recovered ? "item recovered" : "item"} data-role={item.role}>
          <ErrorBoundary>
            <ItemView
              item={item}
              turnId={turn.id}
              state={turn.state}
              isOver={isOver(turn)}
              isLast={index === items.length - 1}
              until={items[index + 1]?.at ?? turn.endedAt}
            />
          </ErrorBoundary>
        </div>
      ))}
      <Progress turn={turn} />
      <Actions turn={turn} />
    </>
  );
});

interface ItemViewProps {
  item: Item;
  turnId: string;
  state: TurnState;
  isOver: boolean;
  isLast: boolean;
  /** When the next item began. */
  until: number | null;
}

/** Memoised, so that a long running turn redraws only what changed. */
const ItemView = memo(({ item, turnId, state, isOver, isLast, until }: ItemViewProps) => {
  const isLive = isLast && !isOver;
  switch (item.role) {
    case "user":
      return <Message item={item} />;
    case "prior":
      return <PriorMessage item={item} />;
    case "assistant":
      return <Markdown text={item.text} growing={isLive} />;
    case "reasoning":
      return <Reasoning item={item} turnId={turnId} isLive={isLive} until={until} />;
    case "tool":
      return <Call call={item} turnId={turnId} isLive={!isOver} />;
    case "question":
      return <Question question={item} turnId={turnId} isOver={isOver} />;
    case "note":
      return <Note item={item} />;
    case "marker":
      return <Marker item={item} turnId={turnId} state={state} isLast={isLast} />;
  }
});

/** A question to the person is shown as a question, so its call is left out. */
function isShownAsQuestion(item: Item, turn: Turn): boolean {
  if (item.role !== "tool" || item.name !== "ask_user") return false;
  return turn.items.some((other) => other.role === "question" && other.callId === item.callId);
}
