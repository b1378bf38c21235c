/** What a browser may refuse to a page: storage that outlives a reload, and a lock that all tabs share. */

class SafeStorage {
  /** What the browser would not take: it has no room, or keeps nothing for this page at all. */
  readonly #held = new Map<string, string>();

  constructor(readonly storage: () => Storage) {}

  get(name: string): string | null {
    try {
      return this.#held.get(name) ?? this.storage().getItem(name);
    } catch {
      return null;
    }
  }

  /** Return the names of all things in it that begin so. */
  names(prefix: string): string[] {
    return [...new Set([...this.#held.keys(), ...this.#stored()])].filter((each) => each.startsWith(prefix));
  }

  #stored(): string[] {
    try {
      return Object.keys(this.storage());
    } catch {
      return [];
    }
  }

  set(name: string, value: string): void {
    try {
      this.storage().setItem(name, value);
      this.#held.delete(name);
    } catch {
      this.#held.set(name, value);
    }
  }

  remove(name: string): void {
    this.#held.delete(name);
    try {
      this.storage().removeItem(name);
    } catch {
      // There is nothing in it.
    }
  }
}

/** For all tabs. */
export const localStore = new SafeStorage(() => localStorage);
/** For this tab alone, across a reload. */
export const tabStore = new SafeStorage(() => sessionStorage);

/** Do something while no other tab does it; where a browser does not let tabs agree on that, each does it for itself. */
export async function withTabLock<T>(name: string, action: () => Promise<T>): Promise<T> {
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
