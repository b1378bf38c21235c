/** Components that control pages share. */

import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { Refused } from "../api.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Command, Field, Problem } from "../ui/parts.tsx";
import { useAction } from "../ui/requests.ts";

interface PageHeadProps {
  title: ComponentChildren;
  /** One sentence about the page. */
  lead?: ComponentChildren;
  /** The list that this item belongs to. */
  back?: { label: string; href: string };
  /** The buttons of the page. */
  children?: ComponentChildren;
}

/** The top of a control page. */
export function PageHead({ title, lead, back, children }: PageHeadProps) {
  return (
    <header class="page-head">
      {back && (
        <a class="page-back" href={back.href}>
          <Icon name="back" size={15} />
          {back.label}
        </a>
      )}
      <div class="page-title">
        <h1>{title}</h1>
        {children && <div class="page-actions">{children}</div>}
      </div>
      {lead && <p class="page-lead">{lead}</p>}
    </header>
  );
}

interface SectionProps {
  title: string;
  /** At the other end of the title's line. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}

/** A titled section of a control page. */
export function Section({ title, aside, children }: SectionProps) {
  const id = useId();
  return (
    <section class="section" aria-labelledby={id}>
      <div class="section-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

interface Fact {
  name: string;
  /** A fact without a value is left out. */
  value: ComponentChildren;
}

/** A list of names and values. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts
        .filter(({ value }) => value !== null && value !== undefined && value !== "")
        .map(({ name, value }) => (
          <div key={name} class="fact">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface Choice<V extends string> {
  value: V;
  label: string;
}

interface FilterProps<V extends string> {
  label: string;
  choices: readonly Choice<V>[];
  chosen: V;
  onChoose: (value: V) => void;
}

/** A row of choices, of which one is selected. */
export function Filter<V extends string>({ label, choices, chosen, onChoose }: FilterProps<V>) {
  return (
    <fieldset class="filter">
      <legend class="unseen">{label}</legend>
      {choices.map(({ value, label }) => (
        <button
          key={value}
          type="button"
          class="filter-choice"
          aria-pressed={value === chosen}
          onClick={() => onChoose(value)}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}

interface ConfirmProps {
  title: string;
  /** The label of the button: what will be done. */
  action: string;
  look?: "main" | "bad";
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
  /** What will happen. */
  children: ComponentChildren;
}

/** Asks before an action that cannot be undone; its error is shown in the same dialog. */
export function Confirm({ title, action, look = "bad", onConfirm, onClose, children }: ConfirmProps) {
  const confirming = useAction();
  const confirm = async () => {
    await onConfirm();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div class="confirm-text">{children}</div>
      {confirming.problem.value !== undefined && <ErrorNotice error={confirming.problem.value} />}
      <div class="dialog-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={look} disabled={confirming.busy.value} onClick={() => confirming.run(confirm)}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}

/** An error on a control page.  A person who is not the operator is told how to become it. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (needsOperator(error)) return <OperatorHint />;
  return <Problem error={error} {...(onRetry ? { onRetry } : {})} />;
}

/** Says how to sign in as the operator. */
function OperatorHint() {
  return (
    <div class="operator-hint" role="note">
      <Icon name="key" />
      <div>
        <p>
          <strong>Only the operator can do this.</strong> Run this on the gateway’s machine, and open the link it
          prints:
        </p>
        <Command text="holdfast link" />
      </div>
    </div>
  );
}

export const needsOperator = (error: unknown) => error instanceof Refused && error.code === "operator_only";

interface PendingProps {
  /** Why loading failed; undefined while it may still succeed. */
  error: unknown;
  onRetry: () => void;
  lines?: number;
}

/** A placeholder while something loads, or the error. */
export function Pending({ error, onRetry, lines = 4 }: PendingProps) {
  return error === undefined ? <Skeleton lines={lines} /> : <ErrorNotice error={error} onRetry={onRetry} />;
}

/** A placeholder of the same size, so that the layout does not jump. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="skeleton-line" />
      ))}
    </div>
  );
}

interface TextFieldProps {
  label: string;
  hint?: ComponentChildren;
  problem?: string | undefined;
  type?: "text" | "password" | "url";
  required?: boolean;
  maxLength?: number;
  /** Which keys a phone shows. */
  inputMode?: "numeric";
  pattern?: string;
  /** Describes the pattern. */
  title?: string;
  placeholder?: string;
  value: string;
  onInput: (value: string) => void;
  onPaste?: (event: ClipboardEvent) => void;
}

/** A labelled line of text for a name, an address or a number: no autocompletion, no spell checking. */
export function TextField({ label, hint, problem, type = "text", value, onInput, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(control) => (
        <input
          autocomplete="off"
          spellcheck={false}
          {...rest}
          {...control}
          // Its declaration wants to know one of them, because each may have other roles; this has none.
          type={type as "text"}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Have the browser ask before it leaves a page with unsaved changes. */
export function useUnsavedWarning(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [changed]);
}
