/** Doing something again and again, for as long as somebody looks. */

/** Do something now, every so often while the page can be seen, and as soon as it can be seen again; never twice at once. */
export function whileVisible(act: () => Promise<void>, everyMs: number): () => void {
  let isBusy = false;
  const again = async () => {
    if (isBusy) return;
    isBusy = true;
    await act().finally(() => {
      isBusy = false;
    });
  };
  const unlessHidden = () => document.hidden || again();
  again();
  const timer = setInterval(unlessHidden, everyMs);
  document.addEventListener("visibilitychange", unlessHidden);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", unlessHidden);
  };
}
