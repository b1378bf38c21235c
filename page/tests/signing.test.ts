// @vitest-environment happy-dom
import { createHash, createHmac } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { forgetLogin, isSignedIn, signedFetch, storeLogin } from "../src/signing.ts";

const LOGIN = { signed_in: true, login: "a-login-of-this-browser", secret: "a-secret", nonce: "nonce-1" };
let asked: { path: string; proof: string[] | undefined; body: unknown }[] = [];

/** A gateway that accepts its newest nonce only. */
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

test("a request is unsigned without a sign-in", async () => {
  answerWith("nonce-1");
  await signedFetch("/api/me");
  expect(asked).toEqual([{ path: "/api/me", proof: undefined, body: undefined }]);
});

test("a signature covers method, path and body", async () => {
  await storeLogin(LOGIN);
  answerWith("nonce-1");
  await signedFetch("/api/turns?session=a%20b", { method: "POST", body: '{"text":"ö"}' });
  const [login, nonce, number, digest, signature] = asked[0]!.proof!;
  expect([login, nonce]).toEqual([LOGIN.login, "nonce-1"]);
  expect(digest).toBe(createHash("sha256").update('{"text":"ö"}').digest("hex"));
  const text = `POST\n/api/turns?session=a%20b\n${digest}\nnonce-1\n${number}`;
  expect(signature).toBe(createHmac("sha256", LOGIN.secret).update(text).digest("hex"));
});

test("no two requests have the same signature", async () => {
  await storeLogin(LOGIN);
  answerWith("nonce-1");
  await Promise.all([signedFetch("/api/me"), signedFetch("/api/me")]);
  expect(new Set(asked.map(({ proof }) => proof![4])).size).toBe(2);
});

test("a request is repeated with the nonce of a restarted gateway, which later requests use at once", async () => {
  await storeLogin(LOGIN);
  answerWith("nonce-2");
  expect((await signedFetch("/api/me")).status).toBe(200);
  expect((await signedFetch("/api/me")).status).toBe(200);
  expect(asked.map(({ proof }) => proof![1])).toEqual(["nonce-1", "nonce-2", "nonce-2"]);
});

test("a gateway that rejects every nonce is not asked forever", async () => {
  await storeLogin(LOGIN);
  asked = [];
  globalThis.fetch = async (path) => {
    asked.push({ path: String(path), proof: undefined, body: undefined });
    return new Response("{}", { status: 401, headers: { "X-Holdfast-Nonce": `nonce-${asked.length + 1}` } });
  };
  expect((await signedFetch("/api/me")).status).toBe(401);
  expect(asked.length).toBe(3);
});

test("after signing out there is no key", async () => {
  await storeLogin(LOGIN);
  expect(isSignedIn()).toBe(true);
  await forgetLogin();
  expect(isSignedIn()).toBe(false);
});

test("a new sign-in replaces the previous one, which is signed out", async () => {
  await storeLogin(LOGIN);
  answerWith("nonce-2");
  await storeLogin({ ...LOGIN, login: "another-login", secret: "another-secret", nonce: "nonce-2" });
  expect(asked.map(({ path, proof }) => [path, proof![0], proof![1]])).toEqual([
    ["/api/sign-out", LOGIN.login, "nonce-2"],
  ]);
  await signedFetch("/api/me");
  expect(asked[1]!.proof![0]).toBe("another-login");
});

test("a first sign-in signs nothing out, nor does one while the gateway is away", async () => {
  answerWith("nonce-1");
  await storeLogin(LOGIN);
  expect(asked).toEqual([]);
  globalThis.fetch = async () => Promise.reject(new TypeError("nobody is there"));
  await storeLogin({ ...LOGIN, login: "another-login" });
  expect(isSignedIn()).toBe(true);
});
