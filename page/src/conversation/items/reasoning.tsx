import { duration } from "../../format.ts";
import type { WordsItem } from "../../journal/view.ts";
import { Icon } from "../../ui/icon.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { useRemembered } from "../remembered.ts";
import { Elapsed } from "./elapsed.tsx";
import { Unfolding } from "./unfolding.tsx";

/** What took less is not worth a number. */
const WORTH_TELLING_MS = 1_000;

interface ReasoningProps {
  item: WordsItem;
  turnId: string;
  /** It is being thought right now. */
  isLive: boolean;
  /** When what follows it began. */
  until: number | null;
}

/** What was thought before the answer, folded. */
export function Reasoning({ item, turnId, isLive, until }: ReasoningProps) {
  const [isOpen, setOpen] = useRemembered(`reasoning ${turnId} ${item.key}`, false);
  const head = (
    <>
      <Icon name="brain" size={16} />
      {isLive ? (
        <span class="shimmer">
          Thinking… <Elapsed since={item.at} />
        </span>
      ) : (
        <span>{thought(until === null ? 0 : until - item.at)}</span>
      )}
    </>
  );
  return (
    <Unfolding class="reasoning" isOpen={isOpen} onTurn={setOpen} head={head}>
      <Markdown text={item.text} growing={isLive} />
    </Unfolding>
  );
}

const thought = (ms: number) => (ms < WORTH_TELLING_MS ? "Thought for a moment" : `Thought for ${duration(ms)}`);
