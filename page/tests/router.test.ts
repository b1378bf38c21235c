// @vitest-environment happy-dom
import fc from "fast-check";
import { expect, test } from "vitest";
import { CONTROL_PAGES, parse, SETUP, to } from "../src/router.ts";

const name = fc.string({ unit: "grapheme", minLength: 1 });

test("every address leads to its route", () => {
  fc.assert(
    fc.property(name, fc.option(name), fc.constantFrom(...CONTROL_PAGES), (id, other, page) => {
      expect(parse(to.session(id, other))).toEqual({ name: "session", id, turn: other });
      expect(parse(to.control(page, other))).toEqual({ name: "control", page, id: other });
      expect(parse(to.new(other))).toEqual({ name: "new", previous: other });
    }),
  );
  expect(parse(to.setup())).toEqual({ name: "control", page: "settings", id: SETUP });
});

test("an unknown address leads to a new session", () => {
  expect(parse("")).toEqual({ name: "new", previous: null });
  expect(parse("#/s/")).toEqual({ name: "new", previous: null });
  expect(parse("#/s/50%")).toEqual({ name: "session", id: "50%", turn: null });
  expect(parse("#/control/nowhere/x")).toEqual({ name: "control", page: "status", id: "x" });
});
