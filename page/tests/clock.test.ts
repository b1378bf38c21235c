// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { get } from "../src/api.ts";
import { gatewayTime } from "../src/clock.ts";
import { relative } from "../src/format.ts";

async function answerAt(ms: number): Promise<void> {
  globalThis.fetch = async () => Response.json({}, { headers: { Date: new Date(ms).toUTCString() } });
  await get("/health");
}

test("the gateway's clock counts, however wrong this machine's clock is", async () => {
  const hour = 3_600_000;
  await answerAt(Date.now() - hour);
  expect(gatewayTime() - Date.now()).toBeLessThan(-hour + 1_500);
  expect(relative(Date.now() - hour - 20_000)).toMatch(/^(19|20|21) s ago$/);
  await answerAt(Date.now());
  expect(Math.abs(gatewayTime() - Date.now())).toBeLessThan(5);
});
