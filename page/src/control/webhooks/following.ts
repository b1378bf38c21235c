/** Looking at something of the gateway's again and again, until it will not change any more. */

import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../../ui/load.ts";

export function useFollowed<T>(path: string, everyMs: number, isOver: (value: T) => boolean): T | undefined {
  const [over, setOver] = useState(false);
  const [loaded] = useLoaded<T>(path, over ? undefined : everyMs);
  const { value } = loaded.value;
  const settled = value !== undefined && isOver(value);
  useEffect(() => setOver(settled), [settled]);
  return value;
}
