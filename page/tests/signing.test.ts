// @vitest-environment happy-dom
import { createHash, createHmac } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { forgetLogin, isSignedIn, keepLogin, signedFetch } from "../src/signing.ts";

const LOGIN = { signed_in: true, login: "a-login-of-this-browser", secret: "a-secret", nonce: "nonce-1" };
let asked: { path: string; proof: string[] | undefined; body: unknown }[] = [];

/** A gateway that wants its newest nonce to be signed. */
function answerWith(nonce: string, status = 401): void {
  asked = [];
  globalThis.fetch = async (path, asking) => {
    const proof = new Headers(asking?.headers).get("X-Holdfast-Proof")?.split(".");
    asked.push({ path: String(path), proof, body: asking?.body });
    if (!proof || proof[1] === nonce) return new Response("{}");
    return new Response("{}", { status, headers: status === 401 ? { "X-Holdfast-Nonce": nonce } : {} });
  };
}

beforeEach(() => forgetLogin());

test("whoever is not signed in signs nothing", async () => {
  answerWith("nonce-1");
  await signedFetch("/api/me");
  expect(asked).toEqual([{ path: "/api/me", proof: undefined, body: undefined }]);
});

test("a signature is over what is asked, where, and with which body", async () => {
  await keepLogin(LOGIN);
  answerWith("nonce-1");
  await signedFetch("/api/turns?session=a%20b", { method: "POST", body: '{"text":"ö"}' });
  const [login, nonce, number, digest, signature] = asked[0]!.proof!;
  expect([login, nonce]).toEqual([LOGIN.login, "nonce-1"]);
  expect(digest).toBe(createHash("sha256").update('{"text":"ö"}').digest("hex"));
  const text = `POST\n/api/turns?session=a%20b\n${digest}\nnonce-1\n${number}`;
  expect(signature).toBe(createHmac("sha256", LOGIN.secret).update(text).digest("hex"));
});

test("no two requests have the same signature", async () => {
  await keepLogin(LOGIN);
  answerWith("nonce-1");
  await Promise.all([signedFetch("/api/me"), signedFetch("/api/me")]);
  expect(new Set(asked.map(({ proof }) => proof![4])).size).toBe(2);
});

test("a gateway that has started anew is asked again with its nonce, and the next request has it at once", async () => {
  await keepLogin(LOGIN);
  answerWith("nonce-2");
  expect((await signedFetch("/api/me")).status).toBe(200);
  expect((await signedFetch("/api/me")).status).toBe(200);
  expect(asked.map(({ proof }) => proof![1])).toEqual(["nonce-1", "nonce-2", "nonce-2"]);
});

test("a gateway that is never content is not asked for ever", async () => {
  await keepLogin(LOGIN);
  asked = [];
  globalThis.fetch = async (path) => {
    asked.push({ path: String(path), proof: undefined, body: undefined });
    return new Response("{}", { status: 401, headers: { "X-Holdfast-Nonce": `nonce-${asked.length + 1}` } });
  };
  expect((await signedFetch("/api/me")).status).toBe(401);
  expect(asked.length).toBe(3);
});

test("whoever signs out has nothing to sign with", async () => {
  await keepLogin(LOGIN);
  expect(isSignedIn()).toBe(true);
  await forgetLogin();
  expect(isSignedIn()).toBe(false);
});

test("a new sign-in takes the place of the one before, which is signed out", async () => {
  await keepLogin(LOGIN);
  answerWith("nonce-2");
  await keepLogin({ ...LOGIN, login: "another-login", secret: "another-secret", nonce: "nonce-2" });
  expect(asked.map(({ path, proof }) => [path, proof![0], proof![1]])).toEqual([
    ["/api/sign-out", LOGIN.login, "nonce-2"],
  ]);
  await signedFetch("/api/me");
  expect(asked[1]!.proof![0]).toBe("another-login");
});

test("a first sign-in signs nothing out, and neither does a gateway that is away", async () => {
  answerWith("nonce-1");
  await keepLogin(LOGIN);
  expect(asked).toEqual([]);
  globalThis.fetch = async () => Promise.reject(new TypeError("nobody is there"));
  await keepLogin({ ...LOGIN, login: "another-login" });
  expect(isSignedIn()).toBe(true);
});
