import type { Item, Turn } from "../journal/view.ts";
import { isOver } from "../turns/standing.ts";
import type { TurnState } from "../wire.ts";
import { Boundary } from "./boundary.tsx";
import { Actions } from "./items/actions.tsx";
import { Call } from "./items/call.tsx";
import { Marker } from "./items/marker.tsx";
import { Message, Prior } from "./items/message.tsx";
import { Note } from "./items/note.tsx";
import { Progress } from "./items/progress.tsx";
import { Question } from "./items/question.tsx";
import { Reasoning } from "./items/reasoning.tsx";
import "./items/items.css";
import { kept } from "../ui/kept.tsx";
import { Markdown } from "./markdown/markdown.tsx";

/** A message, and everything that became of it. */
export const TurnBody = kept(({ turn }: { turn: Turn }) => {
  const items = turn.items.filter((item) => !isSaidTwice(item, turn));
  return (
    <>
      {items.map((item, index) => (
        <div key={item.key} class={item.recovered ? "item recovered" : "item"} data-role={item.role}>
          <Boundary>
            <Drawn
              item={item}
              turnId={turn.id}
              state={turn.state}
              isOver={isOver(turn)}
              isLast={index === items.length - 1}
              until={items[index + 1]?.at ?? turn.endedAt}
            />
          </Boundary>
        </div>
      ))}
      <Progress turn={turn} />
      <Actions turn={turn} />
    </>
  );
});

interface DrawnProps {
  item: Item;
  turnId: string;
  state: TurnState;
  isOver: boolean;
  isLast: boolean;
  /** When what follows it began. */
  until: number | null;
}

/** Of a long turn that goes on, only what has changed is drawn again. */
const Drawn = kept(({ item, turnId, state, isOver, isLast, until }: DrawnProps) => {
  const isLive = isLast && !isOver;
  switch (item.role) {
    case "user":
      return <Message item={item} />;
    case "prior":
      return <Prior item={item} />;
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

/** A question to the person stands there as a question, and need not stand there as a call as well. */
function isSaidTwice(item: Item, turn: Turn): boolean {
  if (item.role !== "tool" || item.name !== "ask_user") return false;
  return turn.items.some((other) => other.role === "question" && other.callId === item.callId);
}
