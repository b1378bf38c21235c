import { Button } from "../../ui/button.tsx";
import { useRemembered } from "../remembered.ts";

interface FreeAnswerProps {
  /** Which question it is for. */
  name: string;
  isSending: boolean;
  onSend: (text: string) => Promise<void>;
}

/** An answer in one's own words. */
export function FreeAnswer({ name, isSending, onSend }: FreeAnswerProps) {
  const [text, setText] = useRemembered(`answer ${name}`, "");
  const send = () => {
    if (text.trim()) onSend(text.trim());
  };
  return (
    <form
      class="free-answer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        class="input"
        rows={1}
        aria-label="Your answer"
        placeholder="Your answer"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <Button look="main" icon="send" type="submit" disabled={isSending || !text.trim()}>
        Answer
      </Button>
    </form>
  );
}
