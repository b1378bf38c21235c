import { useEffect, useState } from "preact/hooks";
import { awaySince } from "../connection.ts";
import { clockTime } from "../format.ts";
import { Icon } from "../ui/icon.tsx";

/** A gateway that is back sooner was not away for anybody who reads. */
const PATIENCE_MS = 1_500;

/** Says calmly that the gateway is away, and that nothing is lost by it. */
export function Banner() {
  const since = useLasting(awaySince.value);
  return (
    <div role="status">
      {since !== null && (
        <p class="away-banner">
          <Icon name="offline" size={16} />
          <span>
            The gateway has not answered since {clockTime(since)}. Your messages are kept and will be sent when it is
            back.
          </span>
        </p>
      )}
    </div>
  );
}

/** Return a moment once it lies back long enough, and null as soon as it is. */
function useLasting(moment: number | null): number | null {
  const [lasting, setLasting] = useState<number | null>(null);
  useEffect(() => {
    if (moment === null) return setLasting(null);
    const timer = setTimeout(() => setLasting(moment), moment + PATIENCE_MS - Date.now());
    return () => clearTimeout(timer);
  }, [moment]);
  return lasting;
}
