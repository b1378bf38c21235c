// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { ModelWizard, type Provider } from "../../src/setup/model_wizard.ts";

const provider = { name: "openai", label: "OpenAI", base_url: "" } as Provider;
/** What was asked, each to be answered when the test wants it. */
let answers: ((body: object) => void)[] = [];

beforeEach(() => {
  answers = [];
  globalThis.fetch = () => new Promise((resolve) => answers.push((body) => resolve(Response.json(body))));
});

test("a late answer does not move the wizard after going back", async () => {
  const course = new ModelWizard();
  course.choose(provider);
  const listing = course.listModels();
  course.move("provider");
  answers[0]!({ models: ["a"] });
  await listing;
  expect(course.step.value).toBe("provider");
  expect(course.busy.value).toBe(false);
});

test("the answer of one model is not shown for another", async () => {
  const course = new ModelWizard();
  course.choose(provider);
  course.chooseModel("slow");
  course.testModel();
  course.move("model");
  course.chooseModel("quick");
  course.testModel();
  answers[1]!({ ok: true, said: "quick" });
  await vi.waitFor(() => expect(course.trial.value).toMatchObject({ said: "quick" }));
  answers[0]!({ ok: true, said: "slow" });
  await new Promise((resolve) => setTimeout(resolve));
  expect(course.trial.value).toMatchObject({ said: "quick" });
});
