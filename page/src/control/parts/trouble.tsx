import { Refused } from "../../api.ts";
import { Icon } from "../../ui/icon.tsx";
import { Command, Problem } from "../../ui/parts.tsx";

/** What went wrong on a control page; to somebody who is not the operator, how to become it. */
export function Trouble({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (isForOperator(error)) return <OperatorHint />;
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

export const isForOperator = (error: unknown) => error instanceof Refused && error.code === "operator_only";
