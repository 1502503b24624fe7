import { runDurableObjectAlarm } from "cloudflare:test";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { applied, begun, claim, committed, freshName, ownedScope } from "../../suites/conformance/leases.ts";
import { v4 as newUuid } from "uuid";
import type { MintedKey } from "../../suites/conformance/client.ts";
import { runCron } from "../../../src/coordinator/cron/cron.ts";
import { env, keyOf, startDeployment, type Api } from "../../support/workerd/api.ts";
import { stubsOf } from "../../support/workerd/stubs.ts";

const ORIGIN = "https://leasehold.test";

let api: Api;
let operator: string;
let viewer: string;

interface Sent {
  form?: Record<string, string>;
  cookie?: string;
  headers?: Record<string, string>;
}

/** Opens a page, or sends a form from a page of the console. */
async function open(path: string, { form, cookie, headers }: Sent = {}): Promise<Response> {
  return api.fetch(ORIGIN + path, {
    redirect: "manual",
    headers: {
      ...(form === undefined ? {} : { origin: ORIGIN, "content-type": "application/x-www-form-urlencoded" }),
      ...(cookie === undefined ? {} : { cookie }),
      ...headers,
    },
    ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form).toString() }),
  });
}

const cookieOf = (answer: Response): string => answer.headers.get("set-cookie")?.split(";")[0] ?? "";

const signIn = async (key: string): Promise<string> =>
  cookieOf(await open("/console/sign-in", { form: { key } }));

const tokenIn = (page: string): string => /name="token"\s+value="([\w-]+)"/.exec(page)?.[1] ?? "";

const mint = async (role: string): Promise<{ id: string; key: MintedKey }> =>
  api.json(201, "POST", "/v1/admin/keys", { body: { role } });

beforeAll(async () => {
  api = await startDeployment("1", "2");
  operator = await signIn(await keyOf("operator"));
  viewer = await signIn((await mint("viewer")).key);
});

const PAGES = [
  "/console",
  "/console/search?q=1",
  "/console/name?type=ROUTES&value=nobody",
  "/console/leases",
  "/console/cells",
  "/console/cells/1",
  "/console/shards",
  "/console/transfers",
  "/console/transfers/2-01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42",
  "/console/verification",
  "/console/audit",
  "/console/keys",
  "/console/identities",
  "/console/identities?kind=token",
  "/console/keys/some-key-id",
  "/console/webhooks",
  "/console/webhooks/some-webhook-id",
  "/console/webhooks/some-webhook-id/change",
  "/console/settings",
  "/console/health",
];

describe("pages", () => {
  test.each(PAGES)("%s has a heading, no script, and a strict policy", async (path) => {
    const answer = await open(path, { cookie: operator });
    const text = await answer.text();
    expect([200, 404]).toContain(answer.status);
    expect(text).toMatch(/<h1>[^<]+<\/h1>/);
    expect(text).toContain("Sign out");
    expect(text).not.toMatch(/<script|style=|\son\w+=/);
    expect(answer.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'self';/);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each(PAGES)("%s shows a viewer no form that changes something", async (path) => {
    const text = await (await open(path, { cookie: viewer })).text();
    const forms = text.match(/method="post"\s+action="[^"]+"/g) ?? [];
    expect(forms).toEqual([expect.stringContaining("/console/sign-out")]);
  });

  test("each style sheet has an address of its own, and is served", async () => {
    const page = await (await open("/console")).text();
    const answer = await open(/href="(\/console\/style-\w+\.css)"/.exec(page)?.[1] ?? "");
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
    await answer.arrayBuffer();
  });

  test("last uses are shown beside keys, and for certificates and tokens", async () => {
    const { id } = await mint("router");
    const hourMs = Date.UTC(2026, 10, 27, 10);
    const use = (keyId: string, kind: string, name: string | null) =>
      env.DB.prepare(
        `INSERT INTO credential_uses (key_id, kind, role, issued_by, name, first_used_at_ms, last_used_at_ms)
         VALUES (?1, ?2, 'router', iif(?2 = 'key', NULL, 'forge'), ?3, 0, ?4)`,
      ).bind(keyId, kind, name, hourMs);
    await env.DB.batch([
      use(id, "key", null),
      use("c-1", "certificate", "cell.example"),
      use("t-1", "token", "repo:<acme>"),
    ]);
    const text = async (path: string): Promise<string> => (await open(path, { cookie: viewer })).text();
    expect(await text("/console/keys")).toMatch(new RegExp(`${id}[^]*2026-11-27 10:00 UTC`));
    const certificates = await text("/console/identities");
    expect(certificates).toContain("cell.example");
    expect(certificates).not.toContain("t-1");
    expect(await text("/console/identities?kind=token")).toContain("repo:&#60;acme&#62;");
    await env.DB.prepare("DELETE FROM credential_uses").run();
  });

  test("without a session, every page is the sign-in page", async () => {
    for (const path of PAGES) expect(await (await open(path)).text()).toContain("<h1>Sign in</h1>");
  });
});

describe("sessions", () => {
  test("the cookie is only for this host, TLS and this site, and has no key", async () => {
    const key = await keyOf("operator");
    const answer = await open("/console/sign-in", { form: { key } });
    const cookie = answer.headers.get("set-cookie") ?? "";
    expect(answer.status).toBe(303);
    expect(cookie).toMatch(/^__Host-leasehold-console=[\w.-]+; Max-Age=1800; Path=\/; HttpOnly;/);
    expect(cookie).toMatch(/SameSite=Strict; Secure$/);
    expect(cookie).not.toContain(key.slice(4, 40));
  });

  test.each(["router", "cell 1"] as const)("a key of the role %s is refused", async (name) => {
    const answer = await open("/console/sign-in", { form: { key: await keyOf(name) } });
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([403, null]);
    await answer.arrayBuffer();
  });

  test("a wrong key, a large form and a form of another type are refused", async () => {
    const headers = { "content-type": "text/plain" };
    const answers = [
      await open("/console/sign-in", { form: { key: "lhk_nothing" } }),
      await open("/console/sign-in", { form: { key: "x".repeat(20_000) } }),
      await open("/console/sign-in", { form: { key: "x" }, headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 400, 400]);
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  });

  test("after ten failures from an address in a minute, its sign-ins are refused", async () => {
    const from = async (address: string, key: string): Promise<Response> => {
      const headers = { "cf-connecting-ip": address };
      const answer = await open("/console/sign-in", { form: { key }, headers });
      await answer.arrayBuffer();
      return answer;
    };
    const key = await keyOf("operator");
    for (let n = 0; n < 10; n += 1) expect((await from("192.0.2.1", "lhk_wrong")).status).toBe(401);
    const refused = await from("192.0.2.1", key);
    expect([refused.status, refused.headers.get("set-cookie")]).toEqual([429, null]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await from("192.0.2.2", key)).status).toBe(303);
  });

  test("a page without TLS takes no key", async () => {
    const answer = await api.fetch("http://leasehold.test/console/sign-in", {
      method: "POST",
      headers: { origin: "http://leasehold.test", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ key: await keyOf("operator") }).toString(),
    });
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([400, null]);
    expect(await answer.text()).toContain("without TLS");
  });

  test("the API accepts no session, neither as a cookie nor as a key", async () => {
    const [, session = ""] = operator.split("=");
    for (const headers of [{ cookie: operator }, { authorization: `Bearer ${session}` }]) {
      const answer = await open("/v1/admin/cells", { headers });
      expect(answer.status).toBe(401);
      await answer.arrayBuffer();
    }
  });

  test("a changed session is none", async () => {
    const answer = await open("/console", { cookie: operator.replace("=", "=A") });
    expect(await answer.text()).toContain("Your session has ended");
    expect(answer.headers.get("set-cookie")).toContain("Max-Age=0");
  });

  test("a session ends when its key is revoked", async () => {
    const { id, key } = await mint("operator");
    const cookie = await signIn(key);
    expect(await (await open("/console", { cookie })).text()).toContain("Overview");
    await api.json(200, "POST", `/v1/admin/keys/${id}/revoke`, {});
    expect(await (await open("/console", { cookie })).text()).toContain("The key was revoked");
    const again = await open("/console/sign-in", { form: { key } });
    expect(again.status).toBe(401);
    await again.arrayBuffer();
  });
});

describe("forms", () => {
  const change = { change: "freeze", typed_cell: "2", reason: "a test" };
  const stateOf = async (): Promise<unknown> => {
    const { cells } = await api.json<{ cells: { state: string }[] }>(200, "GET", "/v1/admin/cells");
    return cells[1]?.state;
  };

  test.each<[string, Sent["headers"]]>([
    ["of another site", { origin: "https://evil.example" }],
    ["of a sibling host", { origin: ORIGIN, "sec-fetch-site": "same-site" }],
    ["without an origin", { origin: "null" }],
  ])("a form %s is refused", async (_, headers = {}) => {
    const page = await (await open("/console/cells/2", { cookie: operator })).text();
    const form = { ...change, token: tokenIn(page) };
    const answer = await open("/console/cells/2", { cookie: operator, form, headers });
    expect(answer.status).toBe(403);
    await answer.arrayBuffer();
    expect(await stateOf()).toBe("ACTIVE");
  });

  test("a form without a token, or with that of another session, is refused", async () => {
    const other = tokenIn(await (await open("/console", { cookie: viewer })).text());
    expect(other).not.toBe("");
    for (const token of ["", other]) {
      const answer = await open("/console/cells/2", { cookie: operator, form: { ...change, token } });
      expect(answer.status).toBe(403);
      await answer.arrayBuffer();
    }
    expect(await stateOf()).toBe("ACTIVE");
  });

  test("the API's policy refuses a form that a viewer sends", async () => {
    const token = tokenIn(await (await open("/console", { cookie: viewer })).text());
    for (const [path, form] of [
      ["/console/cells/2", change],
      ["/console/keys", { role: "operator", days: "1", reason: "a test" }],
      ["/console/keys/some-key-id", { reason: "a test" }],
      [`/console/leases/1/${crypto.randomUUID()}`, { decision: "commit", reason: "x", typed_cell: "1" }],
      ["/console/webhooks", { url: "https://hooks.example.com/", event: "cron_failed", reason: "a test" }],
      ["/console/webhooks/some-webhook-id", { reason: "a test" }],
      ["/console/webhooks/some-webhook-id/change", { event: "cron_failed", reason: "a test" }],
      ["/console/webhooks/some-webhook-id/remove", { reason: "a test" }],
    ] as const) {
      const answer = await open(path, { cookie: viewer, form: { ...form, token } });
      expect(answer.status).toBe(403);
      expect(await answer.text()).toContain("PERMISSION_DENIED");
    }
    expect(await stateOf()).toBe("ACTIVE");
  });

  test("an operator freezes a cell after typing its id, and makes a key that is shown once", async () => {
    const token = tokenIn(await (await open("/console", { cookie: operator })).text());
    const wrong = { ...change, token, typed_cell: "1" };
    const refused = await open("/console/cells/2", { cookie: operator, form: wrong });
    expect(refused.status).toBe(422);
    await refused.arrayBuffer();
    const done = await open("/console/cells/2", { cookie: operator, form: { ...change, token } });
    expect([done.status, done.headers.get("location")]).toEqual([303, "/console/cells/2"]);
    expect(await stateOf()).toBe("FROZEN");
    const form = { token, role: "router", days: "2", reason: "a test", note: "" };
    const made = await (await open("/console/keys", { cookie: operator, form })).text();
    const [key = ""] = /lhk_[\w.-]+/.exec(made) ?? [];
    await api.json(200, "GET", "/v1/limits", { key: key as MintedKey });
    expect(await (await open("/console/keys", { cookie: operator })).text()).not.toContain(key);
  });

  test("a lease is decided after a reason, its cell's id and a second page", async () => {
    const name = freshName();
    const body = { creates: [claim(name)] };
    const granted = { key: "cell 1", body } as const;
    const { lease } = await api.json<{ lease: { uuid: string } }>(201, "POST", "/v1/cells/1/leases", granted);
    const path = `/console/leases/1/${lease.uuid}`;
    const page = await (await open(path, { cookie: operator })).text();
    expect(page).toContain(name);
    const form = { token: tokenIn(page), decision: "rollback", typed_cell: "1", reason: "its cell is gone" };
    const mistyped = await open(path, { cookie: operator, form: { ...form, typed_cell: "2" } });
    expect([mistyped.status, (await mistyped.text()).includes("Nothing was done")]).toEqual([422, true]);
    const asked = await (await open(path, { cookie: operator, form })).text();
    expect(asked).toContain("Roll back this lease of cell 1?");
    expect(await (await open(path, { cookie: operator })).text()).toContain("GRANTED");
    const decided = await open(path, { cookie: operator, form: { ...form, confirmed: "yes" } });
    expect(decided.status).toBe(303);
    const shown = await (await open(path, { cookie: operator })).text();
    expect(shown).toContain("ROLLED_BACK");
    expect(shown).toContain("its cell is gone");
    const late = await open(path, { cookie: operator, form });
    const text = await late.text();
    expect([late.status, text.includes("decided already"), text.includes("Review the decision")]).toEqual([
      422,
      true,
      false,
    ]);
  });
});

describe("webhooks", () => {
  const SECRET_PATH = "services-t0p-s3cret";
  const settings = {
    event: "cron_failed",
    stale_leases: "7",
    for_s: "60",
    resolve_s: "300",
    enabled: "1",
    reason: "a test",
  };
  const page = async (path: string, cookie = operator): Promise<string> =>
    (await open(path, { cookie })).text();

  interface Listed {
    id: string;
    url: string;
    events: string[];
    thresholds: object;
    for_s: number;
    enabled: boolean;
    updated_at: string;
  }
  const listed = async (): Promise<Listed[]> =>
    (await api.json<{ webhooks: Listed[] }>(200, "GET", "/v1/admin/webhooks")).webhooks;

  test("an operator adds, tests, changes and removes one; no page has its path or secret", async () => {
    const token = tokenIn(await page("/console/webhooks"));
    const send = (path: string, form: Record<string, string>): Promise<Response> =>
      open(path, { cookie: operator, form: { token, ...form } });
    const url = `https://hooks.example.invalid/${SECRET_PATH}`;
    const wrong = await send("/console/webhooks", { ...settings, url: "http://10.0.0.1/" });
    expect([wrong.status, (await wrong.text()).includes("must begin with https://")]).toEqual([400, true]);
    const added = await (await send("/console/webhooks", { ...settings, url })).text();
    expect(added).toMatch(/<code>whsec_[\w+/=]+<\/code>/);
    const [webhook] = await listed();
    const id = webhook?.id ?? "";
    expect(webhook).toMatchObject({
      url,
      events: ["cron_failed"],
      thresholds: { stale_leases: 7 },
      for_s: 60,
      enabled: true,
    });
    const own = `/console/webhooks/${id}`;

    const tested = await (await send(own, { reason: "a test" })).text();
    expect(tested).toContain("The test message was not delivered");
    expect(await page(own)).toMatch(/GIVEN UP[^]*Last error/);

    const form = await page(`${own}/change`);
    const seen = /name="seen"\s+value="([^"]+)"/.exec(form)?.[1] ?? "";
    expect(form).toMatch(/name="stale_leases"[^>]+value="7"/);
    const change = { ...settings, stale_leases: "", event: "history_lost", enabled: "", seen };
    for (const [typed, given] of [
      ["00000000", seen],
      [id.slice(-8), "2026-01-01T00:00:00.000Z"],
    ] as const) {
      const refused = await send(`${own}/change`, { ...change, typed_id: typed, seen: given });
      expect([refused.status, (await refused.text()).includes("Nothing was done")]).toEqual([422, true]);
    }
    expect(await listed()).toMatchObject([{ events: ["cron_failed"] }]);
    const changed = await send(`${own}/change`, { ...change, typed_id: id.slice(-8) });
    expect([changed.status, changed.headers.get("location")]).toEqual([303, own]);
    expect(await listed()).toMatchObject([{ url, events: ["history_lost"], thresholds: {}, enabled: false }]);

    for (const cookie of [operator, viewer])
      for (const path of ["/console/webhooks", own, `${own}/change`, `${own}/remove`]) {
        const text = await page(path, cookie);
        expect(text).toContain("https://hooks.example.invalid");
        expect(text).not.toMatch(new RegExp(`${SECRET_PATH}|whsec_`));
        const forms = text.match(/method="post"\s+action="\/console\/webhooks/g) ?? [];
        expect([path, forms.length]).toEqual([path, cookie === viewer ? 0 : 1]);
      }
    expect(await page("/console/webhooks")).toContain("DISABLED");

    const mistyped = await send(`${own}/remove`, { reason: "a test", typed_id: "x" });
    expect([mistyped.status, (await mistyped.text()).includes("Nothing was done")]).toEqual([422, true]);
    const removed = await send(`${own}/remove`, { reason: "a test", typed_id: id.slice(-8) });
    expect([removed.status, removed.headers.get("location")]).toEqual([303, "/console/webhooks"]);
    expect(await listed()).toEqual([]);
    const { entries } = await api.json<{ entries: { action: string; reason: string }[] }>(
      200,
      "GET",
      `/v1/admin/audit?target=${id}`,
    );
    expect(entries.map(({ action, reason }) => `${action} ${reason}`).toSorted()).toEqual([
      "add_webhook a test",
      "change_webhook a test",
      "remove_webhook a test",
      "test_webhook a test",
    ]);
  });
});

describe("what pages show", () => {
  const textOf = async (path: string): Promise<string> => {
    const text = await (await open(path, { cookie: operator })).text();
    return text.replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
  };

  const takeAndDrop = async (name: string): Promise<void> => {
    const op = claim(name, 4_711);
    for (const body of [{ creates: [op] }, { destroys: [op] }]) {
      const { lease } = await api.json<{ lease: { uuid: string } }>(201, "POST", "/v1/cells/1/leases", {
        key: "cell 1",
        body,
      });
      await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
    }
  };

  test("a name has the history of its owners", async () => {
    const name = freshName();
    expect(await textOf(`/console/name?type=ROUTES&value=${name}`)).toContain("No cell had this name.");
    await takeAndDrop(name);
    await committed(api, name);
    const text = await textOf(`/console/name?type=ROUTES&value=${name}`);
    expect(text.match(/NAMESPACE 7/g)).toHaveLength(3);
    expect(text).toMatch(/ ago [\d-]+ [\d:]+ UTC now 1 name-/);
    expect(text).toMatch(/destroy, [\da-f-]{36}/);
  });

  test("a cell has what it reported, with its drift by kind, and so has the verification page", async () => {
    expect(await textOf("/console/cells/2")).toContain("The cell has never reported its status.");
    const body = {
      sdk: { name: "leasehold", version: "9.9.9" },
      reconciliation: { outcome: "done", ended_ago_ms: 5_000, counts: { processed: 3, committed: 1 } },
      verification: {
        status: "needs_approval",
        approval_reason: "1234 repairs",
        counts: { rows: 20_000, claims: 19_000, missing: 1_230, extra: 4 },
      },
    };
    await api.json(200, "PUT", "/v1/cells/2/status", { key: "cell 2", body });
    const cell = await textOf("/console/cells/2");
    expect(cell).toContain("leasehold 9.9.9");
    expect(cell).toContain("3 processed, 1 committed");
    expect(cell).toContain("20,000 rows, 19,000 claims");
    expect(cell).toMatch(/missing +1,230 +different +0 +extra +4 +duplicates +0/);
    expect(await textOf("/console/verification")).toMatch(
      /needs approval *, ended \ds ago +1230 missing, 4 extra/,
    );
    expect(await textOf("/console")).toContain("Report of cell 2");
  });

  test("a lease has what its cell reported last beside the decision", async () => {
    const { uuid } = await begun(api);
    const path = `/console/leases/1/${uuid}`;
    expect(await textOf(path)).toContain(
      "The cell has never reported its status, so it may or may not be alive.",
    );
    await api.json(200, "PUT", "/v1/cells/1/status", {
      key: "cell 1",
      body: { sdk: { name: "leasehold", version: "9.9.9" } },
    });
    expect(await textOf(path)).toMatch(
      /The cell reported \ds ago \(leasehold 9\.9\.9\), with no reconciliation/,
    );
    expect(await textOf(path)).toContain("commit if it has the changes of this lease");
    expect(await textOf(path)).not.toContain("doesn't see this one");
    await api.json(200, "POST", `/v1/cells/1/leases/${uuid}/rollback`, { key: "cell 1" });
  });

  test("claims are counted by type when somebody asks", async () => {
    expect(await textOf("/console/cells/1")).not.toContain("in all");
    await applied(api, (await committed(api)).value);
    expect(await textOf("/console/cells/1?count=1")).toMatch(/Claims by type, \d+ in all +ROUTES \d/);
  });

  test("a draining cell shows its claims, and a removed one has no form", async () => {
    await api.json(201, "POST", "/v1/admin/cells", {
      body: { cell_id: "3", name: "Gone", address: "https://cell-3.test" },
    });
    await api.json(200, "POST", "/v1/admin/cells/3/drain", { body: {} });
    expect(await textOf("/console/cells/3")).toContain("The cell has no claims.");
    await api.json(200, "POST", "/v1/admin/cells/3/removal", { body: { export: [] } });
    await api.json(200, "POST", "/v1/admin/cells/3/removal/steps", { body: { reason: "a test" } });
    const removed = await textOf("/console/cells/3");
    expect(removed).toContain("This cell is removed, so its state can't be changed.");
    expect(removed).not.toContain("Change its state");
  });

  test("the search finds a request of the audit, and the names of a source", async () => {
    const frozen = await api.send("POST", "/v1/admin/cells/1/freeze", { body: {} });
    const id = frozen.headers.get("x-request-id");
    await api.json(200, "POST", "/v1/admin/cells/1/unfreeze", { body: {} });
    await runCron(api.env, Date.now());
    expect(await textOf(`/console/search?q=${id}`)).toContain(`Request ${id}: freeze_cell of 1`);
    const name = freshName();
    const body = { creates: [claim(name, 815)] };
    const granted = { key: "cell 1", body } as const;
    const { lease } = await api.json<{ lease: { uuid: string } }>(201, "POST", "/v1/cells/1/leases", granted);
    await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
    const found = await textOf("/console/search?q=RAILS_TABLE_ROUTES+815");
    expect(found).toContain("Found: 1");
    expect(found).toContain(name);
    expect(await textOf("/console/search?q=RAILS_TABLE_ROUTES+81")).toContain("Nothing found");
  });

  test("the search finds the names of a subject, and goes on behind the first page", async () => {
    const value = freshName();
    const subject = { type: "PROJECT", id: `search ${value}` };
    const creates = Array.from({ length: 101 }, (_, n) => ({ ...claim(`${value}-${n}`, n), subject }));
    const granted = { key: "cell 1", body: { creates } } as const;
    const { lease } = await api.json<{ lease: { uuid: string } }>(201, "POST", "/v1/cells/1/leases", granted);
    await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
    const path = `/console/search?${String(new URLSearchParams({ q: `PROJECT ${subject.id}` }))}`;
    await vi.waitUntil(async () => (await textOf(path)).includes("Found: 101"));
    const text = await (await open(path, { cookie: operator })).text();
    const [, next = ""] = /href="([^"]+)">Search on/.exec(text) ?? [];
    expect(await textOf(next.replaceAll("&#38;", "&"))).toMatch(/Found: 1(?!\d)/);
  });
});

test.each([
  ["ROUTES", ".", "`value`: "],
  ["ROUTES", "..", "`value`: "],
  ["..", "limits", "`bucket_type` "],
])("a name %s %s leads to no other route", async (type, value, refusal) => {
  const query = new URLSearchParams({ type, value }).toString();
  const text = await (await open(`/console/name?${query}`, { cookie: operator })).text();
  expect(text.split(refusal)).toHaveLength(4);
});

test("hostile texts are shown as text, with invisible characters escaped", async () => {
  const evil = `"><script>alert(1)</script>\u202Egnp\u200B`;
  const query = new URLSearchParams({ q: evil, type: "ROUTES", value: evil }).toString();
  for (const path of ["/console/search", "/console/name"]) {
    const text = await (await open(`${path}?${query}`, { cookie: operator })).text();
    expect(text).not.toContain("<script>");
    expect(text).toContain(String.raw`\u202egnp\u200b`);
  }
});

describe("transfers", () => {
  // The tests of forms have frozen it.
  beforeAll(() => api.json(200, "POST", "/v1/admin/cells/2/unfreeze", { body: { reason: "a test" } }));

  const SCOPE = `"><script>alert(1)</script>`;

  async function prepared(scope = freshName(), value = freshName()): Promise<string> {
    const uuid = newUuid();
    await ownedScope(api, scope, value);
    await api.json(200, "POST", "/v1/transfers", { key: "cell 1", body: { uuid, to: "2", scope } });
    return `2-${uuid}`;
  }

  /** Both cells report what they should. */
  async function report(id: string): Promise<void> {
    const { transfer } = await api.json<{ transfer: { expected: Record<"from" | "to", object> } }>(
      200,
      "GET",
      `/v1/transfers/${id}`,
    );
    for (const [key, side] of [
      ["cell 1", "from"],
      ["cell 2", "to"],
    ] as const)
      await api.json(200, "POST", `/v1/transfers/${id}/report`, { key, body: transfer.expected[side] });
  }

  const stateOf = async (id: string): Promise<string> =>
    (await api.json<{ transfer: { state: string } }>(200, "GET", `/v1/transfers/${id}`)).transfer.state;

  const textOf = async (path: string, cookie: string): Promise<string> =>
    (await open(path, { cookie })).text();

  /** Waits for the ledger of cell 2. Without an alarm, it goes on only seconds after a decision. */
  const eventually = (read: () => Promise<string>) =>
    expect.poll(async () => {
      await runDurableObjectAlarm(stubsOf(env).ledger("2"));
      return read();
    });

  test("both pages show one with a hostile scope as text, and a viewer no form", async () => {
    const id = await prepared(SCOPE);
    for (const path of ["/console/transfers", `/console/transfers/${id}`]) {
      const text = await textOf(path, viewer);
      expect(text).toContain("&#60;script&#62;alert(1)");
      expect(text).not.toContain("<script");
      expect(text).not.toContain(`method="post" action="/console/transfers`);
    }
    expect(await textOf("/console/transfers?from=1&to=2", viewer)).toContain(id);
    expect(await textOf("/console/transfers?from=2", viewer)).not.toContain(id);
  });

  test("the page says who takes the next step", async () => {
    const id = await prepared();
    const path = `/console/transfers/${id}`;
    const first = await textOf(path, viewer);
    expect(first).toContain("The destination, cell 2, or an operator accepts it.");
    expect(first).toContain("The source, cell 1, reports rows");
    await api.json(200, "POST", `/v1/transfers/${id}/accept`, { key: "cell 2" });
    expect(await textOf(path, viewer)).not.toContain("accepts it");
    await report(id);
    const ready = await textOf(path, viewer);
    expect(ready).toContain(`leasehold transfers cut ${id}`);
    expect(ready).toContain("equal the claims");
    await api.json(200, "POST", `/v1/transfers/${id}/cut`, { key: "cell 1" });
    expect(await textOf(path, operator)).not.toContain("Abort this transfer");
  });

  test("names and searches lead to one", async () => {
    const value = freshName();
    const scope = freshName();
    const id = await prepared(scope, value);
    const uuid = id.slice(2);
    const link = `href="/console/transfers/${id}"`;
    const name = `/console/name?type=ROUTES&value=${value}`;
    for (const path of [name, `/console/search?q=${uuid}`, `/console/search?q=${id}`]) {
      const text = await textOf(path, viewer);
      expect(text).toContain(link);
      expect(text).not.toContain(`/${uuid}`);
    }
    await api.json(200, "POST", `/v1/transfers/${id}/accept`, { key: "cell 2" });
    await report(id);
    await api.json(200, "POST", `/v1/transfers/${id}/cut`, { key: "cell 1" });
    await eventually(() => stateOf(id)).toBe("FINISHED");
    const moved = await textOf(name, viewer);
    expect(moved).toContain("no lease");
    expect(moved).toContain(`move, <a class="id" ${link}`);
  });

  test("an operator aborts one after typing its destination and a reason; a viewer can't", async () => {
    const id = await prepared();
    const path = `/console/transfers/${id}`;
    const token = tokenIn(await textOf(path, operator));
    const send = async (fields: Record<string, string>, cookie = operator): Promise<number> => {
      const answer = await open(path, { cookie, form: { token, ...fields } });
      await answer.arrayBuffer();
      return answer.status;
    };
    expect(await send({ typed_cell: "1", reason: "a test" })).toBe(422);
    expect(await send({ typed_cell: "2", reason: " " })).toBe(422);
    const ofViewer = tokenIn(await textOf("/console", viewer));
    expect(await send({ token: ofViewer, typed_cell: "2", reason: "a test" }, viewer)).toBe(403);
    expect(await stateOf(id)).toBe("PREPARED");
    expect(await send({ typed_cell: "2", reason: "a test" })).toBe(303);
    expect(await stateOf(id)).toBe("ABORTED");
    await eventually(() => textOf(path, viewer)).toContain("Nothing is left to do.");
    expect(await send({ typed_cell: "2", reason: "a test" })).toBe(422);
    const other = await prepared();
    const listed = await textOf("/console/transfers", viewer);
    expect(listed.indexOf(other)).toBeLessThan(listed.indexOf(id));
  });
});

test("open leases come in pages of 50, and each of them once", async () => {
  for (let n = 0; n < 60; n += 1) {
    const body = { creates: [claim(freshName())] };
    await api.json(201, "POST", "/v1/cells/1/leases", { key: "cell 1", body });
  }
  await runCron(api.env, Date.now());
  const leasesIn = (page: string): string[] => page.match(/(?<=leases\/1\/)[\da-f-]{36}/g) ?? [];
  const first = await (await open("/console/leases?cell=1", { cookie: operator })).text();
  const next = /href="([^"]+)">Next page/.exec(first)?.[1]?.replaceAll("&#38;", "&") ?? "";
  const second = await (await open(next, { cookie: operator })).text();
  expect(first.length).toBeLessThan(60_000);
  expect([leasesIn(first).length, leasesIn(second).length]).toEqual([50, 10]);
  expect(new Set([...leasesIn(first), ...leasesIn(second)]).size).toBe(60);
  expect(second).not.toContain("Next page");
});

test("the page of shards has their last scrubs", async () => {
  const text = await (await open("/console/shards", { cookie: operator })).text();
  expect(text).toContain("Last scrub of each shard");
  expect(text).toContain("Holds limit");
  expect(text).toContain("leasehold scrub --help");
});
