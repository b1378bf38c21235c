import { count } from "../format.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { attach } from "./attaching.ts";
import { PASTE_LONG, without } from "./message.ts";
import type { Writing } from "./writing.ts";

const NAME = "pasted.txt";

/** Return what was pasted: files, where there is no text that could be meant instead; else a text that is long. */
export function pasted(event: ClipboardEvent): { files: readonly File[]; long: string } {
  const text = event.clipboardData?.getData("text/plain").replaceAll("\r\n", "\n") ?? "";
  const files = text ? [] : [...(event.clipboardData?.files ?? [])];
  return { files, long: text.length > PASTE_LONG ? text : "" };
}

/** Offers to attach a long text that was pasted, instead of having it in the message. */
export function PasteOffer({ writing, text, onDone }: { writing: Writing; text: string; onDone: () => void }) {
  const move = () => {
    writing.text.value = without(writing.text.value, text);
    attach(writing, [new File([text], NAME, { type: "text/plain" })]);
    onDone();
  };
  return (
    <div class="paste-offer" role="status">
      <span>You pasted {count(text.length)} characters.</span>
      <Button small icon="attach" onClick={move}>
        Attach them as a file
      </Button>
      <IconButton icon="close" size={14} label="Leave them in the message" onClick={onDone} />
    </div>
  );
}
