import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
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
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const confirm = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="confirm-text">{children}</div>
      {problem !== undefined && <Trouble error={problem} />}
      <div class="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={look} disabled={busy} onClick={confirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}
