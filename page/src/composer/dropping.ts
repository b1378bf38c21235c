/** Files that are dragged over the page can be dropped anywhere on it. */

import { useEffect, useState } from "preact/hooks";

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

/** Take the files that are dropped.  Returns whether some are held over the page. */
export function useDropped(onFiles: (files: readonly File[]) => void): boolean {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    const ending = new AbortController();
    const listen = (name: "dragover" | "dragleave" | "drop", act: (event: DragEvent) => void) =>
      document.addEventListener(name, (event) => holdsFiles(event) && act(event), { signal: ending.signal });
    listen("dragover", (event) => {
      event.preventDefault();
      setHeld(true);
    });
    // Leaving one part of the page for another is not leaving the page.
    listen("dragleave", (event) => event.relatedTarget === null && setHeld(false));
    listen("drop", (event) => {
      event.preventDefault();
      setHeld(false);
      onFiles([...(event.dataTransfer?.files ?? [])]);
    });
    return () => ending.abort();
  }, [onFiles]);
  return held;
}
