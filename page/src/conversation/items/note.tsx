import { useState } from "preact/hooks";
import type { NoteItem } from "../../journal/view.ts";
import { Icon } from "../../ui/icon.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { Unfolding } from "./unfolding.tsx";

/** What Holdfast says in its own name. */
export function Note({ item }: { item: NoteItem }) {
  if (item.kind === "compacted") return <Summary text={item.text} />;
  return (
    <div class={item.kind === "banner" ? "notice banner" : "notice"}>
      <Icon name={item.kind === "banner" ? "retry" : "info"} size={16} />
      <div class="notice-text">
        <Markdown text={item.text} />
      </div>
    </div>
  );
}

/** The conversation grew longer than the model can read: all of it is still here, and this is what it reads instead. */
function Summary({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const head = (
    <>
      <Icon name="archive" size={16} />
      <span>From here on the model reads a summary of what is older</span>
    </>
  );
  return (
    <Unfolding class="summary" isOpen={isOpen} onTurn={setOpen} head={head}>
      <Markdown text={text} />
    </Unfolding>
  );
}
