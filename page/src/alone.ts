/** Doing something in one tab at a time. */

/** Do something while no other tab does it; where a browser does not let tabs agree on that, each does it for itself. */
export async function alone<T>(name: string, action: () => Promise<T>): Promise<T> {
  // Pages that came neither by TLS nor from this machine have no locks.
  if (!navigator.locks) return action();
  let hasBegun = false;
  const begin = () => {
    hasBegun = true;
    return action();
  };
  try {
    return await navigator.locks.request(name, begin);
  } catch (error) {
    if (hasBegun) throw error;
    return action();
  }
}
