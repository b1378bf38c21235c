/** The state of the set-up wizard of a Telegram bot: its token, its name here, and what Telegram answered. */

import { computed, signal } from "@preact/signals";
import { get, patch, post } from "../api.ts";
import type { ChannelTrial, ChannelView, PageOfChannelView, SettingsView } from "../wire.ts";
import { Wizard } from "./wizard.ts";

const KIND = "telegram";
const SETTINGS = "/api/settings";
/** As @BotFather writes it. */
const TOKEN = /\d{1,20}:[A-Za-z0-9_-]{30,100}/;
const NAME = /^[A-Za-z0-9_-]{1,32}$/;
/** A setting that every account has. */
const ACCOUNT_SETTING = /^channels\.([^.]+)\.kind$/;

type Step = "make" | "token" | "trial" | "saved" | "ready";

export class BotWizard extends Wizard<Step> {
  readonly settings = signal<SettingsView | null>(null);
  readonly accounts = signal<readonly ChannelView[]>([]);
  readonly token = signal("");
  /** The name of the account. */
  readonly name = signal("");
  readonly apiBase = signal("");
  readonly trial = signal<ChannelTrial | null>(null);

  readonly taken = computed(() => accountNames(this.settings.value));
  readonly nameProblem = computed(() => nameProblem(this.name.value.trim(), this.taken.value));
  /** The account that the bot has already; a bot can have one only. */
  readonly twin = computed(() => {
    const url = this.trial.value?.bot_url;
    return this.accounts.value.find((each) => url && each.bot_url === url) ?? null;
  });

  constructor() {
    super("make");
  }

  readonly load = async (): Promise<void> => {
    const loaded = await this.ask(() =>
      Promise.all([get<SettingsView>(SETTINGS), get<PageOfChannelView>("/api/channels")]),
    );
    if (!loaded) return;
    [this.settings.value] = loaded;
    this.accounts.value = loaded[1].items;
    this.name.value = freeName(this.taken.value);
  };

  readonly tryToken = async (): Promise<void> => {
    this.step.value = "trial";
    this.trial.value = null;
    const plan = { kind: KIND, name: this.name.value.trim(), settings: this.#chosen() };
    const trial = await this.ask(() => post<ChannelTrial>("/api/channels/try", plan));
    if (trial) this.trial.value = trial;
  };

  /** Save the account, unless the file was changed since it was read: another account may have the name. */
  readonly save = async (): Promise<void> => {
    const changes = accountChanges(this.name.value.trim(), this.#chosen());
    const base = this.settings.value?.revision ?? null;
    const saved = await this.ask(() => patch<SettingsView>(SETTINGS, { changes, base }));
    if (saved) this.step.value = "saved";
    else await this.#readAgain();
  };

  /** Read the settings after a refusal, so that the next try knows what has changed. */
  async #readAgain(): Promise<void> {
    this.settings.value = await get<SettingsView>(SETTINGS).catch(() => this.settings.value);
  }

  #chosen(): Record<string, string> {
    const apiBase = this.apiBase.value.trim();
    return { token: this.token.value.trim(), ...(apiBase ? { api_base: apiBase } : {}) };
  }
}

/** Return the token in a text, such as the whole message of @BotFather; else the text. */
export const tokenIn = (text: string) => TOKEN.exec(text)?.[0] ?? text.trim();

/** Return the names of the accounts in the settings, also of those that begin with the next start. */
export const accountNames = (settings: SettingsView | null): readonly string[] =>
  (settings?.items ?? []).flatMap(({ key }) => ACCOUNT_SETTING.exec(key)?.[1] ?? []);

/** Return a name for one more bot. */
export function freeName(taken: readonly string[]): string {
  let name = KIND;
  for (let number = 2; taken.includes(name); number += 1) name = `${KIND}-${number}`;
  return name;
}

/** Return what is wrong with the name of a new account. */
export function nameProblem(name: string, taken: readonly string[]): string | undefined {
  if (taken.includes(name)) return `There is an account ${name} already. Choose another name.`;
  if (!NAME.test(name)) return "Letters, digits, - and _ only, 32 at most.";
  return undefined;
}

/** Return the settings of a new account, by key.  An account that is named like its platform needs no kind. */
export function accountChanges(name: string, chosen: Record<string, string>): Record<string, string> {
  const all = name === KIND ? chosen : { kind: KIND, ...chosen };
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [`channels.${name}.${key}`, value]));
}
