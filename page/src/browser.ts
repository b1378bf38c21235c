/** What a browser may refuse to a page: storage that outlives a reload, and a lock that all tabs share. */

class SafeStorage {
  /** What the browser did not store, because its storage is full or switched off for this page. */
  readonly #fallback = new Map<string, string>();

  constructor(readonly storage: () => Storage) {}

  get(name: string): string | null {
    try {
      return this.#fallback.get(name) ?? this.storage().getItem(name);
    } catch {
      return null;
    }
  }

  /** Return all names that begin with a prefix. */
  names(prefix: string): string[] {
    return [...new Set([...this.#fallback.keys(), ...this.#stored()])].filter((each) => each.startsWith(prefix));
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
      this.#fallback.delete(name);
    } catch {
      this.#fallback.set(name, value);
    }
  }

  remove(name: string): void {
    this.#fallback.delete(name);
    try {
      this.storage().removeItem(name);
    } catch {
      // The browser has no storage for this page, so there is nothing to remove.
    }
  }
}

/** Shared by all tabs. */
export const localStore = new SafeStorage(() => localStorage);
/** For this tab alone; survives a reload. */
export const tabStore = new SafeStorage(() => sessionStorage);

/** Run an action while no other tab runs it.  In a browser without locks, each tab runs it. */
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
