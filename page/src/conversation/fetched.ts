/** Pictures of the gateway. */

import { useEffect, useState } from "preact/hooks";
import { getFile } from "../api.ts";

export interface Fetched {
  /** Where the browser finds it; null until it is there. */
  source: string | null;
  isMissing: boolean;
}

/** An image element cannot show who asks, so a picture of the gateway is fetched as everything else is. */
export function useFetched(path: string): Fetched {
  const [found, setFound] = useState<Fetched>({ source: null, isMissing: false });
  useEffect(() => {
    const ending = new AbortController();
    let source: string | null = null;
    fetchPicture(path, ending.signal).then(
      (blob) => {
        if (ending.signal.aborted) return;
        source = URL.createObjectURL(blob);
        setFound({ source, isMissing: false });
      },
      () => ending.signal.aborted || setFound({ source: null, isMissing: true }),
    );
    return () => {
      ending.abort();
      if (source) URL.revokeObjectURL(source);
    };
  }, [path]);
  return found;
}

async function fetchPicture(path: string, signal: AbortSignal): Promise<Blob> {
  const blob = await getFile(path, { signal });
  if (!blob.type.startsWith("image/")) throw new Error("There is no such picture.");
  return blob;
}
