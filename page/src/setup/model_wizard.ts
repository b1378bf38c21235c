/** The state of the set-up wizard of a model: what was chosen so far, and what the gateway answered. */

import { computed, signal } from "@preact/signals";
import { get, post } from "../api.ts";
import type { ModelPlan, ModelsView, SettingsView, SetupView, Trial } from "../wire.ts";
import { Wizard } from "./wizard.ts";

export type Provider = SetupView["providers"][number];
type Step = "provider" | "access" | "model" | "trial" | "saved" | "ready";

/** A model may have to be loaded first. */
const TRIAL_TIMEOUT_MS = 120_000;

export class ModelWizard extends Wizard<Step> {
  readonly options = signal<SetupView | null>(null);
  readonly provider = signal<Provider | null>(null);
  readonly key = signal("");
  readonly baseUrl = signal("");
  readonly model = signal("");
  readonly models = signal<ModelsView | null>(null);
  readonly trial = signal<Trial | null>(null);

  readonly #choice = computed<ModelPlan>(() => ({
    provider: this.provider.value?.name ?? "",
    name: this.model.value.trim(),
    base_url: this.baseUrl.value.trim(),
    // Without a key, the gateway uses the one it has for the same provider at the same address.
    ...(this.key.value.trim() ? { api_key: this.key.value.trim() } : {}),
  }));

  constructor() {
    super("provider");
  }

  readonly load = async (): Promise<void> => {
    const options = await this.ask(() => get<SetupView>("/api/setup"));
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
    const models = await this.ask(() => post<ModelsView>("/api/setup/models", this.#choice.value));
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
    const trial = await this.ask(() => post<Trial>("/api/setup/test", this.#choice.value, asking));
    if (trial) this.trial.value = trial;
  };

  readonly save = async (): Promise<void> => {
    const saved = await this.ask(() => post<SettingsView>("/api/setup", this.#choice.value));
    if (saved) this.step.value = "saved";
  };
}

/** Return whether a model of this provider is in use now. */
export function isInUse(options: SetupView | null, provider: Provider): options is SetupView {
  return options?.model.name.split(":")[0] === provider.name;
}
