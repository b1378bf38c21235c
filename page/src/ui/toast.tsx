/** Toasts: short messages at the edge of the page, often with an undo. */

import { signal } from "@preact/signals";
import { errorText } from "../api.ts";
import { Button, IconButton } from "./button.tsx";

interface Toast {
  id: number;
  text: string;
  bad: boolean;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 6_000;
const toasts = signal<readonly Toast[]>([]);
let last = 0;

/** Show a toast. */
export function showToast(
  text: string,
  more: { bad?: boolean; action?: Toast["action"]; shownMs?: number } = {},
): void {
  const id = ++last;
  const toast: Toast = { id, text, bad: more.bad ?? false, ...(more.action ? { action: more.action } : {}) };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => dismiss(id), more.shownMs ?? SHOWN_MS);
}

/** Show an error as a toast. */
export const showError = (error: unknown) => showToast(errorText(error), { bad: true, shownMs: SHOWN_MS * 2 });

/** Run an action, and show its error as a toast.  Returns undefined on an error. */
export async function attempt<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    showError(error);
    return undefined;
  }
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((each) => each.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.bad ? "toast bad" : "toast"}>
          <span>{toast.text}</span>
          {toast.action && (
            <Button
              small
              onClick={() => {
                toast.action?.run();
                dismiss(toast.id);
              }}
            >
              {toast.action.label}
            </Button>
          )}
          <IconButton icon="close" label="Dismiss" size={14} onClick={() => dismiss(toast.id)} />
        </div>
      ))}
    </div>
  );
}
