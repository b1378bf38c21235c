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
  /** One sentence that says what this page is about. */
  lead?: ComponentChildren;
  /** The list that this is one thing of. */
  back?: { label: string; href: string };
  /** What can be done here. */
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
  /** Beside the title, at the other end. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of a control page, with its title. */
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
  /** Null where there is nothing to say; the fact is left out then. */
  value: ComponentChildren;
}

/** Names and values, one below the other. */
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

/** A row of choices, of which one holds. */
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

/** What went wrong on a control page; to somebody who is not the operator, how to become it. */
export function ErrorNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (needsOperator(error)) return <OperatorHint />;
  return <Problem error={error} {...(onRetry ? { onRetry } : {})} />;
}

/** Say how a browser is signed in as the operator. */
function OperatorHint() {
  return (
    <div class="operator-hint" role="note">
      <Icon name="key" />
      <div>
        <p>
          <strong>This is for the operator.</strong> On the machine of the gateway, run this and open the link that it
          prints:
        </p>
        <Command text="holdfast link" />
      </div>
    </div>
  );
}

export const needsOperator = (error: unknown) => error instanceof Refused && error.code === "operator_only";

interface PendingProps {
  /** Why it does not come; undefined while it may. */
  error: unknown;
  onRetry: () => void;
  lines?: number;
}

/** What is not there yet: the place of it, or why it does not come. */
export function Pending({ error, onRetry, lines = 4 }: PendingProps) {
  return error === undefined ? <Skeleton lines={lines} /> : <ErrorNotice error={error} onRetry={onRetry} />;
}

/** The place of what is not there yet, so that nothing jumps when it comes. */
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
  required?: boolean;
  maxLength?: number;
  /** Which keys a phone shows. */
  inputMode?: "numeric";
  pattern?: string;
  /** What the pattern asks for. */
  title?: string;
  placeholder?: string;
  value: string;
  onInput: (value: string) => void;
}

/** A line of text with its name.  It is a name, an address or a number: nothing to be completed or corrected. */
export function TextField({ label, hint, value, onInput, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          autocomplete="off"
          spellcheck={false}
          {...rest}
          {...control}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Have the browser ask before it leaves a page with changes that are not saved. */
export function useUnsavedWarning(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [changed]);
}
