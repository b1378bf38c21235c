import { expect, test } from "vitest";
import { newDoing } from "../../src/ui/doing.ts";

test("what is asked for twice is done once", async () => {
  const doing = newDoing();
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

test("what went wrong stays until something else is done", async () => {
  const doing = newDoing();
  await doing.run(() => Promise.reject(new Error("no")));
  expect(doing.problem.value).toEqual(new Error("no"));
  await doing.run(async () => "yes");
  expect(doing.problem.value).toBeUndefined();
});
