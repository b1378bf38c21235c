/** Small components that most pages need. */

import { Component, type ComponentChildren, type FunctionComponent } from "preact";
import { useId, useState } from "preact/hooks";
import { errorText } from "../api.ts";
import { fullMoment, moment, relative } from "../format.ts";
import { Button, IconButton } from "./button.tsx";
import { Icon, type IconName } from "./icon.tsx";

const COPIED_MS = 1_500;

export type Tone = "plain" | "good" | "busy" | "bad" | "note";

/** A word in a coloured pill; the colour adds nothing that the word does not say. */
export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export function Spinner({ label = "Loading" }: { label?: string }) {
  return <span class="spinner" role="status" aria-label={label} />;
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} size={32} />
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <span>{errorText(error)}</span>
      {onRetry && (
        <Button small icon="retry" onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  problem?: string | undefined;
  /** Renders the control, with its id and description. */
  children: (control: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean;
  }) => ComponentChildren;
}

export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  const described = hint || problem ? `${id}-more` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": described, "aria-invalid": Boolean(problem) })}
      {described && (
        <p id={described} class={problem ? "field-more bad" : "field-more"}>
          {problem ?? hint}
        </p>
      )}
    </div>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: () => string; label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text()))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return <IconButton icon={copied ? "check" : "copy"} label={copied ? "Copied" : label} size={16} onClick={copy} />;
}

/** Copy text to the clipboard.  Without TLS, and away from this machine, only `execCommand` works. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function Time({ at, as = "moment" }: { at: number; as?: "moment" | "relative" }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={fullMoment(at)}>
      {as === "moment" ? moment(at) : relative(at)}
    </time>
  );
}

const WEB_URL = /^https?:\/\//;

/** A link to another site, in a tab of its own.  What is no address of the web is shown as text. */
export function WebLink({ url, children }: { url: string; children?: ComponentChildren }) {
  const text = children ?? url.replace(WEB_URL, "");
  if (!WEB_URL.test(url)) return <>{text}</>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {text}
    </a>
  );
}

/** A command to run in a terminal. */
export function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <code>{text}</code>
      <CopyButton text={() => text} label="Copy the command" />
    </div>
  );
}

interface ScrollableProps {
  /** The accessible name. */
  label: string;
  class: string;
  children: ComponentChildren;
}

/** Content that may be wider than the column, and scrolls by itself, also with the keyboard. */
export function Scrollable({ label, class: name, children }: ScrollableProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: A fieldset is for what is filled in.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: It takes the focus so that the arrow keys scroll it.
    <div role="group" class={name} aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

/** Shows a render error in place, without affecting the rest of the page. */
export class ErrorBoundary extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <p class="call-more">This part cannot be shown: {errorText(this.state.error)}</p>;
  }
}

/** Return a component that is rendered again only when its properties change. */
export function memo<P extends object>(draw: (props: P) => ComponentChildren): FunctionComponent<P> {
  const Drawn: FunctionComponent<P> = draw;
  class Kept extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return haveChanged(this.props, next);
    }

    override render() {
      return <Drawn {...this.props} />;
    }
  }
  return (props) => <Kept {...props} />;
}

function haveChanged(before: object, after: object): boolean {
  const [old, fresh] = [Object.entries(before), new Map(Object.entries(after))];
  return old.length !== fresh.size || old.some(([name, value]) => fresh.get(name) !== value);
}
