// @vitest-environment happy-dom
import { h, render } from "preact";
import { expect, test, vi } from "vitest";
import { archive } from "../../src/sessions/actions.tsx";
import { sessionOf, updateSessions } from "../../src/sessions/store.ts";
import { Toasts } from "../../src/ui/toast.tsx";
import { session } from "./session.ts";

test("a refused change is reverted and not reported as done", async () => {
  render(h(Toasts, {}), document.body);
  const refused = { error: { code: "no", message: "not now" } };
  globalThis.fetch = async () => Response.json(refused, { status: 409 });
  const own = session({ id: "a", label: "Plans" });
  updateSessions([own]);
  await archive(own);
  await vi.waitFor(() => expect(document.body.textContent).toContain("Not now."));
  expect(document.body.textContent).not.toContain("archived");
  expect(sessionOf("a")?.archived).toBe(false);
});
