/** What somebody types, once they have stopped for a moment: nobody is asked about every letter. */

import { useEffect, useState } from "preact/hooks";

const PAUSE_MS = 250;

/** Return a text as it was when its writer last stopped. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
