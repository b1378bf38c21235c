// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newAction, newLoader } from "../../src/ui/requests.ts";

interface Answer {
  resolve: (value: string) => void;
  reject: (error: Error) => void;
}

/** The requests, each answered when the test says so. */
function asking() {
  const answers: Answer[] = [];
  const read = () => new Promise<string>((resolve, reject) => answers.push({ resolve, reject }));
  return { answers, read };
}

test("the answer to the later request wins, whichever arrives first", async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const { answers, read } = asking();
    const [loaded, look] = newLoader(read);
    const looks = [look(), look()];
    for (const each of order) answers[each]!.resolve(`answer ${each}`);
    await Promise.all(looks);
    expect(loaded.value).toEqual({ value: "answer 1", error: undefined });
  }
});

test("an answer stays while the next request runs", async () => {
  const { answers, read } = asking();
  const [loaded, look] = newLoader(read);
  const first = look();
  look();
  answers[0]!.resolve("slow");
  await first;
  expect(loaded.value.value).toBe("slow");
});

test("a value stays when its reload fails", async () => {
  const { answers, read } = asking();
  const [loaded, look] = newLoader(read);
  const looks = [look(), look()];
  answers[0]!.resolve("here");
  answers[1]!.reject(new Error("away"));
  await Promise.all(looks);
  expect(loaded.value).toEqual({ value: "here", error: new Error("away") });
});

test("an action that is started twice runs once", async () => {
  const doing = newAction();
  const asked: string[] = [];
  const ask = (name: string) => async () => {
    asked.push(name);
    await Promise.resolve();
    return name;
  };
  const both = [doing.run(ask("first")), doing.run(ask("second"))];
  expect(doing.busy.value).toBe(true);
  expect(await Promise.all(both)).toEqual(["first", undefined]);
  expect(asked).toEqual(["first"]);
  expect(doing.busy.value).toBe(false);
});

test("an error stays until the next action", async () => {
  const doing = newAction();
  await doing.run(() => Promise.reject(new Error("no")));
  expect(doing.problem.value).toEqual(new Error("no"));
  await doing.run(async () => "yes");
  expect(doing.problem.value).toBeUndefined();
});
