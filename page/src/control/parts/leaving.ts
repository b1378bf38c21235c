import { useEffect } from "preact/hooks";

/** Have the browser ask before it leaves a page with changes that are not saved. */
export function useWarning(changed: boolean): void {
  useEffect(() => {
    if (!changed) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [changed]);
}
