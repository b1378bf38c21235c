/** The course of a set-up: what was chosen so far, and what the gateway says to it. */

import { computed, signal } from "@preact/signals";
import { get, post } from "../api.ts";
import type { ModelPlan, ModelsView, SettingsView, SetupView, Trial } from "../wire.ts";

export const STEPS = ["provider", "access", "model", "trial"] as const;
export type Provider = SetupView["providers"][number];
export type Step = (typeof STEPS)[number] | "saved" | "ready";

/** A model may have to be loaded before it says its first word. */
const TRIAL_PATIENCE_MS = 120_000;

/** Make a set-up that begins at its first step. */
export function newCourse() {
  const step = signal<Step>("provider");
  const offer = signal<SetupView | null>(null);
  const provider = signal<Provider | null>(null);
  const key = signal("");
  const baseUrl = signal("");
  const model = signal("");
  const models = signal<ModelsView | null>(null);
  const trial = signal<Trial | null>(null);
  const problem = signal<unknown>(undefined);
  const busy = signal(false);
  const choice = computed<ModelPlan>(() => ({
    provider: provider.value?.name ?? "",
    name: model.value.trim(),
    base_url: baseUrl.value.trim(),
    // Without one, the gateway takes what it keeps for the same provider at the same address.
    ...(key.value.trim() ? { api_key: key.value.trim() } : {}),
  }));
  const attempt = async (action: () => Promise<void>) => {
    busy.value = true;
    problem.value = undefined;
    try {
      await action();
    } catch (error) {
      problem.value = error;
    }
    busy.value = false;
  };
  return {
    step,
    offer,
    provider,
    key,
    baseUrl,
    model,
    models,
    trial,
    problem,
    busy,
    begin: () =>
      attempt(async () => {
        offer.value = await get<SetupView>("/api/setup");
      }),
    choose: (chosen: Provider) => {
      if (provider.value?.name !== chosen.name) {
        key.value = model.value = "";
        baseUrl.value = isInUse(offer.value, chosen) ? offer.value.model.base_url : chosen.base_url;
      }
      provider.value = chosen;
      step.value = "access";
    },
    list: () =>
      attempt(async () => {
        models.value = await post<ModelsView>("/api/setup/models", choice.value);
        step.value = "model";
      }),
    name: (chosen: string) => {
      model.value = chosen;
    },
    test: () =>
      attempt(async () => {
        step.value = "trial";
        trial.value = null;
        trial.value = await post<Trial>("/api/setup/test", choice.value, { patienceMs: TRIAL_PATIENCE_MS });
      }),
    save: () =>
      attempt(async () => {
        await post<SettingsView>("/api/setup", choice.value);
        step.value = "saved";
      }),
    back: (to: Step) => {
      problem.value = undefined;
      step.value = to;
    },
  };
}

export type Course = ReturnType<typeof newCourse>;

/** Return whether it is a model of this provider that answers now. */
export function isInUse(offer: SetupView | null, provider: Provider): offer is SetupView {
  return offer?.model.name.split(":")[0] === provider.name;
}
