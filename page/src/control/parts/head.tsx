import type { ComponentChildren } from "preact";
import { Icon } from "../../ui/icon.tsx";

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
