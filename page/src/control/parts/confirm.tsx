import type { ComponentChildren } from "preact";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDoing } from "../../ui/doing.ts";
import { Trouble } from "./trouble.tsx";

interface ConfirmProps {
  title: string;
  /** What the button says: the thing that is done. */
  action: string;
  look?: "main" | "bad";
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
  /** What will happen. */
  children: ComponentChildren;
}

/** Ask before something that cannot be taken back; what goes wrong with it is said in the same place. */
export function Confirm({ title, action, look = "bad", onConfirm, onClose, children }: ConfirmProps) {
  const doing = useDoing();
  const confirm = async () => {
    await onConfirm();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="confirm-text">{children}</div>
      {doing.problem.value !== undefined && <Trouble error={doing.problem.value} />}
      <div class="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={look} disabled={doing.busy.value} onClick={() => doing.run(confirm)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
