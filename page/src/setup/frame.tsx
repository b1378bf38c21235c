/** The frame of a set-up wizard: the numbered steps, and the current one below. */

import "./setup.css";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../ui/icon.tsx";
import type { Wizard } from "./wizard.ts";

interface WizardFrameProps<Step extends string> {
  wizard: Wizard<Step>;
  /** The numbered steps in their order; a step without a title comes after them. */
  titles: Readonly<Partial<Record<Step, string>>>;
  /** The current step. */
  children: ComponentChildren;
}

export function WizardFrame<Step extends string>({ wizard, titles, children }: WizardFrameProps<Step>) {
  return (
    <div class="setup">
      <Steps wizard={wizard} titles={titles} />
      <StepFrame key={wizard.step.value}>{children}</StepFrame>
    </div>
  );
}

/** A step takes the focus before the next key, so that no input is lost. */
function StepFrame({ children }: { children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const first = element.current?.querySelector<HTMLElement>("input, .setup-end .button");
    (first ?? element.current)?.focus({ preventScroll: true });
  }, []);
  return (
    <div ref={element} class="setup-step" tabIndex={-1}>
      {children}
    </div>
  );
}

/** The progress; earlier steps can be opened again. */
function Steps<Step extends string>({ wizard, titles }: Omit<WizardFrameProps<Step>, "children">) {
  const steps = Object.keys(titles) as Step[];
  const at = steps.indexOf(wizard.step.value);
  const isOver = at < 0;
  return (
    <ol class="setup-steps" aria-label="Steps">
      {steps.map((step, number) => (
        <li key={step} data-done={isOver || number < at} aria-current={number === at ? "step" : undefined}>
          <button type="button" disabled={isOver || number >= at} onClick={() => wizard.move(step)}>
            <span class="setup-sign">{isOver || number < at ? <Icon name="check" size={14} /> : number + 1}</span>
            {titles[step]}
          </button>
        </li>
      ))}
    </ol>
  );
}

interface FailureProps {
  /** What happened, in a few words. */
  lead: string;
  text: string | null;
  hint?: string | null;
}

/** What does not work, and what to do. */
export function Failure({ lead, text, hint }: FailureProps) {
  return (
    <div class="setup-failed" role="alert">
      <p>
        <strong>{lead}</strong> {text}
      </p>
      {hint && <p>What to do: {hint}.</p>}
    </div>
  );
}
