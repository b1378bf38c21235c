/** The state of the set-up wizard: what was chosen so far, and what the gateway answered. */

import { computed, signal } from "@preact/signals";
import { get, post } from "../api.ts";
import type { ModelPlan, ModelsView, SettingsView, SetupView, Trial } from "../wire.ts";

export const STEPS = ["provider", "access", "model", "trial"] as const;
export type Provider = SetupView["providers"][number];
export type Step = (typeof STEPS)[number] | "saved" | "ready";

/** A model may have to be loaded first. */
const TRIAL_TIMEOUT_MS = 120_000;

export class SetupWizard {
  readonly step = signal<Step>("provider");
  readonly options = signal<SetupView | null>(null);
  readonly provider = signal<Provider | null>(null);
  readonly key = signal("");
  readonly baseUrl = signal("");
  readonly model = signal("");
  readonly models = signal<ModelsView | null>(null);
  readonly trial = signal<Trial | null>(null);
  readonly problem = signal<unknown>(undefined);
  readonly busy = signal(false);
  /** The number of the latest request; older answers are dropped. */
  #latest = 0;

  readonly #choice = computed<ModelPlan>(() => ({
    provider: this.provider.value?.name ?? "",
    name: this.model.value.trim(),
    base_url: this.baseUrl.value.trim(),
    // Without a key, the gateway uses the one it has for the same provider at the same address.
    ...(this.key.value.trim() ? { api_key: this.key.value.trim() } : {}),
  }));

  readonly load = async (): Promise<void> => {
    const options = await this.#ask(() => get<SetupView>("/api/setup"));
    if (options) this.options.value = options;
  };

  choose(chosen: Provider): void {
    if (this.provider.value?.name !== chosen.name) {
      const options = this.options.value;
      this.key.value = this.model.value = "";
      this.baseUrl.value = isInUse(options, chosen) ? options.model.base_url : chosen.base_url;
    }
    this.provider.value = chosen;
    this.step.value = "access";
  }

  async listModels(): Promise<void> {
    const models = await this.#ask(() => post<ModelsView>("/api/setup/models", this.#choice.value));
    if (!models) return;
    this.models.value = models;
    this.step.value = "model";
  }

  chooseModel(chosen: string): void {
    this.model.value = chosen;
  }

  readonly testModel = async (): Promise<void> => {
    this.step.value = "trial";
    this.trial.value = null;
    const asking = { timeoutMs: TRIAL_TIMEOUT_MS };
    const trial = await this.#ask(() => post<Trial>("/api/setup/test", this.#choice.value, asking));
    if (trial) this.trial.value = trial;
  };

  readonly save = async (): Promise<void> => {
    const saved = await this.#ask(() => post<SettingsView>("/api/setup", this.#choice.value));
    if (saved) this.step.value = "saved";
  };

  back(to: Step): void {
    this.#latest += 1;
    this.busy.value = false;
    this.problem.value = undefined;
    this.step.value = to;
  }

  /** Send a request; null if it failed, or a later one was sent meanwhile. */
  async #ask<T>(ask: () => Promise<T>): Promise<T | null> {
    const mine = ++this.#latest;
    this.busy.value = true;
    this.problem.value = undefined;
    let found: T | null = null;
    let problem: unknown;
    try {
      found = await ask();
    } catch (error) {
      problem = error;
    }
    if (mine !== this.#latest) return null;
    this.busy.value = false;
    this.problem.value = problem;
    return found;
  }
}

/** Return whether a model of this provider is in use now. */
export function isInUse(options: SetupView | null, provider: Provider): options is SetupView {
  return options?.model.name.split(":")[0] === provider.name;
}
