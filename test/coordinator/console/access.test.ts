/** The console behind Cloudflare Access. */
import { SignJWT } from "jose";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readAccess } from "../../../src/coordinator/auth/access-settings.ts";
import { AccessVerifier } from "../../../src/coordinator/auth/access-verifier.ts";
import { wallClock } from "../../../src/coordinator/runtime.ts";
import { Api, startDeployment } from "../../support/workerd/api.ts";
import { AUDIENCE, startTeam, TEAM } from "./access-rig.ts";

const ORIGIN = "https://leasehold.test";

const VARIABLES = {
  LEASEHOLD_ACCESS_TEAM_DOMAIN: TEAM,
  LEASEHOLD_ACCESS_AUDIENCE: AUDIENCE,
  LEASEHOLD_ACCESS_OPERATORS: "Ada@example.com,K@k.org",
  LEASEHOLD_ACCESS_VIEWERS: "*@example.com, guest@example.org",
};

describe("settings", () => {
  test("without the variables, Access is not used", () => {
    expect(readAccess({ LEASEHOLD_ACCESS_AUDIENCE: " " })).toBeUndefined();
  });

  test("addresses are compared in lower case", () => {
    expect(readAccess(VARIABLES)).toEqual({
      issuer: `https://${TEAM}`,
      audience: AUDIENCE,
      operators: ["ada@example.com", "k@k.org"],
      viewers: ["*@example.com", "guest@example.org"],
    });
  });

  test.each([
    ["LEASEHOLD_ACCESS_TEAM_DOMAIN", ""],
    ["LEASEHOLD_ACCESS_TEAM_DOMAIN", "https://acme.cloudflareaccess.com"],
    ["LEASEHOLD_ACCESS_TEAM_DOMAIN", "acme.example.com"],
    ["LEASEHOLD_ACCESS_AUDIENCE", ""],
    ["LEASEHOLD_ACCESS_AUDIENCE", "console"],
    ["LEASEHOLD_ACCESS_OPERATORS", "ada"],
    ["LEASEHOLD_ACCESS_OPERATORS", "*"],
    ["LEASEHOLD_ACCESS_VIEWERS", "*@*"],
    ["LEASEHOLD_ACCESS_VIEWERS", "*@\u212A.org"],
  ])("%s must not be `%s`", (name, value) => {
    expect(() => readAccess({ ...VARIABLES, [name]: value })).toThrow(name);
  });

  test("somebody must have a role", () => {
    const nobody = { LEASEHOLD_ACCESS_OPERATORS: "", LEASEHOLD_ACCESS_VIEWERS: "" };
    expect(() => readAccess({ ...VARIABLES, ...nobody })).toThrow("must name somebody");
  });
});

describe("assertions", () => {
  const newVerifier = (): AccessVerifier => {
    const settings = readAccess(VARIABLES);
    if (settings === undefined) throw new Error("no settings");
    return new AccessVerifier(settings, wallClock, () => {});
  };
  const detailOf = async (assertion: string, verifier = newVerifier()): Promise<string> => {
    const verified = await verifier.verify(assertion, Date.now());
    return verified.ok ? verified.value.role : verified.refusal.detail;
  };

  test.each([
    ["ada@example.com", "operator"],
    ["ADA@example.com", "operator"],
    ["grace@example.com", "viewer"],
    ["guest@example.org", "viewer"],
  ])("%s has the role %s", async (email, role) => {
    const team = await startTeam();
    expect(await detailOf(await team.assert({ email }))).toBe(role);
  });

  // The Kelvin sign is another letter than `k`, although `toLowerCase` makes that of it.
  test.each([
    ["other@example.org"],
    ["ada@example.com.evil.example"],
    ["ada@sub.example.com"],
    ["\u212A@k.org"],
  ])("%s has no role", async (email) => {
    const team = await startTeam();
    expect(await detailOf(await team.assert({ email }))).toContain("has no role here");
  });

  const nowS = Math.floor(Date.now() / 1_000);
  test.each<[string, Record<string, unknown>, string]>([
    ["another application", { aud: ["cd".repeat(32)] }, "is not valid for this application"],
    ["no application", { aud: undefined }, "is not valid for this application"],
    ["another team", { iss: "https://evil.cloudflareaccess.com" }, "is not valid for this application"],
    ["the past", { exp: nowS - 1 }, "has expired"],
    ["the future", { nbf: nowS + 600 }, "is not valid yet"],
    ["no time", { exp: undefined }, "is not of a person"],
    ["a service", { sub: "", email: undefined, common_name: "robot" }, "is not of a person"],
  ])("one of %s is refused", async (_, claims, why) => {
    const team = await startTeam();
    expect(await detailOf(await team.assert(claims))).toContain(why);
  });

  test("one that is changed, unsigned, signed with a secret, or too long is refused", async () => {
    const team = await startTeam();
    const [head = "", body = "", signature = ""] = (await team.assert()).split(".");
    const claimed = JSON.parse(atob(body)) as Record<string, unknown>;
    const encoded = (value: unknown): string => btoa(JSON.stringify(value)).replaceAll("=", "");
    const forged = encoded({ ...claimed, email: "ada@example.com", iat: 1 });
    for (const assertion of [
      `${head}.${forged}.${signature}`,
      `${encoded({ alg: "none", typ: "JWT", kid: "key-0" })}.${body}.`,
      await new SignJWT(claimed)
        .setProtectedHeader({ alg: "HS256", kid: "key-0" })
        .sign(new TextEncoder().encode("secret")),
    ])
      expect(await detailOf(assertion)).toContain("is not valid for this application");
    for (const assertion of ["", "a.b", `${head}.${body}`, "x".repeat(20_000)])
      expect(await detailOf(assertion)).toContain("is malformed");
  });

  test("keys are read again for an unknown key, but at most every 30 seconds", async () => {
    const team = await startTeam();
    const verifier = newVerifier();
    for (let n = 0; n < 3; n += 1) expect(await detailOf(await team.assert(), verifier)).toBe("operator");
    expect(team.reads).toBe(1);
    await team.rotate();
    const assertion = await team.assert();
    expect(await detailOf(assertion, verifier)).toContain("unknown key");
    expect(team.reads).toBe(1);
    expect(await verifier.verify(assertion, Date.now() + 31_000)).toMatchObject({ ok: true });
    expect(team.reads).toBe(2);
  });

  test("requests share one read of the keys, and a failure for 10 seconds", async () => {
    const team = await startTeam();
    const verifier = newVerifier();
    const assertions = await Promise.all(
      ["key-0", "unknown", "unknown"].map((kid) => team.assert({}, { kid })),
    );
    const codesAt = (atMs: number): Promise<string[]> =>
      Promise.all(
        assertions.map(async (assertion) => {
          const verified = await verifier.verify(assertion, atMs);
          return verified.ok ? "ok" : verified.refusal.code;
        }),
      );
    const nowMs = Date.now();
    team.answer = () => new Response("no", { status: 500 });
    const down = ["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"];
    expect(await codesAt(nowMs)).toEqual(down);
    expect(await codesAt(nowMs + 9_999)).toEqual(down);
    expect(team.reads).toBe(1);
    team.answer = undefined;
    expect(await codesAt(nowMs + 10_000)).toEqual(["ok", "UNAUTHENTICATED", "UNAUTHENTICATED"]);
    expect(team.reads).toBe(2);
  });

  test.each<[string, () => Response]>([
    ["fail", () => new Response("no", { status: 500 })],
    ["are moved", () => new Response(null, { status: 302, headers: { location: "https://evil.example" } })],
    ["are no keys", () => Response.json({ keys: [{ kid: "key-0" }] })],
    ["are too many", () => new Response(" ".repeat(70_000))],
  ])("keys that %s make it unavailable", async (_, answer) => {
    const team = await startTeam();
    team.answer = answer;
    const verified = await newVerifier().verify(await team.assert(), Date.now());
    expect(verified).toMatchObject({ ok: false, refusal: { code: "UNAVAILABLE" } });
  });
});

describe("the console", () => {
  let api: Api;

  beforeAll(async () => {
    await startDeployment("1");
  });

  // An isolate keeps the keys of a team, and each test has a team of its own.
  beforeEach(() => {
    api = new Api(VARIABLES);
  });

  const open = async (
    path: string,
    assertion: string,
    form?: Record<string, string>,
  ): Promise<{ status: number; text: string; location: string | null }> => {
    const answer = await api.fetch(ORIGIN + path, {
      redirect: "manual",
      headers: {
        "cf-access-jwt-assertion": assertion,
        ...(form && { origin: ORIGIN, "content-type": "application/x-www-form-urlencoded" }),
      },
      ...(form && { method: "POST", body: new URLSearchParams(form).toString() }),
    });
    return { status: answer.status, text: await answer.text(), location: answer.headers.get("location") };
  };

  const tokenIn = (page: string): string => /name="token"\s+value="([\w-]+)"/.exec(page)?.[1] ?? "";

  test("an operator needs no key, and the audit has the user's id", async () => {
    const team = await startTeam();
    const assertion = await team.assert();
    const page = await open("/console/cells/1", assertion);
    expect(page.text).toContain("ada@example.com");
    const form = { token: tokenIn(page.text), change: "freeze", typed_cell: "1", reason: "a test" };
    expect((await open("/console/cells/1", assertion, { ...form, token: "" })).status).toBe(403);
    expect((await open("/console/cells/1", assertion, form)).status).toBe(303);
    const other = await team.assert({ sub: "11111111-61da-459d-899c-0a01c76a2f94" });
    expect((await open("/console/cells/1", other, form)).status).toBe(403);
    expect((await open("/console", assertion)).text).not.toContain("Your key expires");
    // The answer to a form may not lead to another origin, as Access does here.
    expect(page.text).not.toContain("/console/sign-out");
    expect(page.text).toContain('href="/cdn-cgi/access/logout"');
  });

  test("a viewer changes nothing, and a user without a role sees why", async () => {
    const team = await startTeam();
    const viewer = await team.assert({ email: "grace@example.com" });
    const page = await open("/console/cells/1", viewer);
    expect(page.text).not.toContain("Change its state");
    const form = { token: tokenIn(page.text), change: "drain", typed_cell: "1", reason: "a test" };
    expect((await open("/console/cells/1", viewer, form)).status).toBe(403);
    const stranger = await open("/console", await team.assert({ email: "x@example.org" }));
    expect([stranger.status, stranger.text.includes("has no role here")]).toEqual([403, true]);
  });

  test("the API takes no assertion for a key", async () => {
    const team = await startTeam();
    expect((await open("/v1/admin/cells", await team.assert())).status).toBe(401);
  });

  test("a user whose id is revoked is shut out", async () => {
    const team = await startTeam();
    const assertion = await team.assert({ sub: "22222222-61da-459d-899c-0a01c76a2f94" });
    expect((await open("/console", assertion)).status).toBe(200);
    const id = "access-22222222-61da-459d-899c-0a01c76a2f94";
    await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, { body: {} });
    expect((await open("/console", assertion)).text).toContain("The key was revoked");
  });

  test("where Access is not used, its header means nothing", async () => {
    const team = await startTeam();
    const plain = new Api();
    const headers = { "cf-access-jwt-assertion": await team.assert() };
    const answer = await plain.fetch(`${ORIGIN}/console`, { headers });
    expect(await answer.text()).toContain("<h1>Sign in</h1>");
    expect(team.reads).toBe(0);
  });
});
