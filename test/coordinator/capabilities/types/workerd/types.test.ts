/** Types that a deployment declares itself, from outside. */
import { beforeEach, describe, expect, test } from "vitest";
import type { TypesDocument } from "../../../../../src/common/types/document.ts";
import { gitlabTypes } from "../../../../../src/common/types/gitlab.ts";
import { Deployment } from "../../../../../src/coordinator/isolate/deployment.ts";
import { runCron } from "../../../../../src/coordinator/cron/cron.ts";
import { Api, env, startDeployment } from "../../../../support/workerd/api.ts";
import { restartObjects } from "../../../../support/workerd/restart.ts";
import { saveDirectory } from "../../../../support/workerd/save-directory.ts";

interface Declared {
  version: number;
  types: TypesDocument;
  in_use: Record<string, string[]>;
}

interface Plan extends Declared {
  changes: { entry: string; change: string }[];
  refusals: { entry: string; reason: string }[];
}

const own: TypesDocument = {
  bucket_types: {
    HANDLES: { number: 1, pattern: "[a-z0-9_]+", min_length: 3, max_length: 12 },
    STORES: { number: 2, form: "path" },
    VOUCHERS: { number: 3, script: "any", case: "exact" },
  },
  subject_types: { PERSON: { number: 1 }, STORE: { number: 2 } },
  source_types: { PEOPLE: { number: 1 }, SHOPS: { number: 2 } },
};

let api: Api;

beforeEach(async () => {
  api = await startDeployment("1", "2");
});

const read = (): Promise<Declared> => api.json(200, "GET", "/v1/admin/types", {});
const put = (types: unknown, version: number, more = {}) =>
  ["PUT", "/v1/admin/types", { body: { version, types, ...more } }] as const;

async function declare(types: TypesDocument = own): Promise<Plan> {
  return api.json<Plan>(200, ...put(types, (await read()).version));
}

const begin = (
  cell: string,
  type: string,
  value: string,
  more: { subject?: string; source?: string } = {},
) => {
  const { subject = "PERSON", source = "PEOPLE" } = more;
  const create = {
    bucket: { type, value },
    subject: { type: subject, id: 1 },
    source: { type: source, id: 1 },
  };
  return ["POST", `/v1/cells/${cell}/leases`, { key: `cell ${cell}`, body: { creates: [create] } }] as const;
};

async function claimed(type: string, value: string, more = {}): Promise<void> {
  const { lease } = await api.json<{ lease: { uuid: string } }>(201, ...begin("1", type, value, more));
  await api.json(200, "POST", `/v1/cells/1/leases/${lease.uuid}/commit`, { key: "cell 1" });
}

describe("a deployment that declares its own types", () => {
  test("takes names under each rule, and refuses them to other cells", async () => {
    await declare();
    for (const [value, other, free] of [
      ["Ada_9", "ada_9", "ada_8"],
      ["\u0441\u043e\u0441\u043e", "coco", "cocoa"],
    ] as const) {
      await claimed("HANDLES", value);
      const refused = await api.problem(409, ...begin("2", "HANDLES", other));
      expect(refused).toMatchObject({
        code: "ALREADY_EXISTS",
        conflicts: [{ bucket: { type: "HANDLES", value: other }, kind: "taken", owner: "other" }],
      });
      await api.json(201, ...begin("2", "HANDLES", free));
    }
    await claimed("STORES", "Acme/Shoes", { source: "SHOPS", subject: "STORE" });
    await api.problem(409, ...begin("2", "STORES", "acme/SHOES"));
    expect(await api.problem(400, ...begin("2", "STORES", "acme//shoes"))).toMatchObject({
      field: "creates[0].bucket.value",
    });
    await claimed("VOUCHERS", "aBc");
    await api.json(201, ...begin("2", "VOUCHERS", "abc"));
    await api.problem(409, ...begin("2", "VOUCHERS", "aBc"));
  });

  test("refuses values that its rules refuse, with the rule", async () => {
    await declare();
    for (const [value, detail] of [
      ["ab", "has 2 characters; this type allows at least 3"],
      ["a".repeat(13), "has 13 characters; this type allows at most 12"],
      ["ada-9", "does not match the type's pattern, [a-z0-9_]+"],
    ] as const) {
      const refused = await api.problem(400, ...begin("1", "HANDLES", value));
      expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", field: "creates[0].bucket.value" });
      expect(refused.detail).toContain(detail);
    }
    // A refused name does not bring its type into use.
    expect((await read()).in_use["bucket_types"]).toEqual([]);
  });

  test("[T5] lists, exports and digests claims by its types, also after a restart", async () => {
    await declare();
    await claimed("HANDLES", "ada_9");
    await claimed("STORES", "acme", { source: "SHOPS", subject: "STORE" });
    await restartObjects(env);
    const isolate = new Api();
    const key = "cell 1";
    const list = (query: string) =>
      isolate.json<{ records: { bucket: unknown; subject: unknown }[] }>(
        200,
        "GET",
        `/v1/cells/1/records?${query}`,
        {
          key,
        },
      );
    expect((await list("source_type=SHOPS")).records).toMatchObject([
      {
        bucket: { type: "STORES", value: "acme" },
        subject: { type: "STORE", id: "1" },
        source: { type: "SHOPS" },
      },
    ]);
    expect((await list("source_type=PEOPLE&bucket_type=STORES")).records).toEqual([]);
    expect((await list("source_type=PEOPLE&bucket_type=HANDLES")).records).toHaveLength(1);
    const { text } = await isolate.send("GET", "/v1/cells/1/records/export?source_type=PEOPLE", { key });
    expect(text).toContain('"type":"HANDLES","value":"ada_9"');
    const digests = await isolate.json<{ digests: { count: number }[] }>(
      200,
      "POST",
      "/v1/cells/1/records/digests",
      { key, body: { source_type: "SHOPS", bucket_types: ["STORES"], ranges: [{}] } },
    );
    expect(digests.digests).toMatchObject([{ count: 1 }]);
    const found = await isolate.json(200, "GET", "/v1/records/STORES/ACME", { key: "router" });
    expect(found).toMatchObject({ record: { bucket: { type: "STORES" } }, cell: { id: "1" } });
  });

  test("[T4] names the declared types when it refuses another", async () => {
    await declare();
    expect(await api.problem(400, ...begin("1", "ROUTES", "ada"))).toMatchObject({
      field: "creates[0].bucket.type",
      detail:
        "`creates[0].bucket.type` must name a declared bucket type, and ROUTES is none; " +
        "declared: HANDLES, STORES, VOUCHERS.",
    });
    expect(await api.problem(400, ...begin("1", "HANDLES", "ada", { subject: "USER" }))).toMatchObject({
      field: "creates[0].subject.type",
    });
    const list = ["GET", "/v1/cells/1/records?source_type=USERS", { key: "cell 1" }] as const;
    expect(await api.problem(400, ...list)).toMatchObject({ field: "source_type" });
    const lookup = { key: "router", body: { buckets: [{ type: "NONE", value: "x" }] } } as const;
    expect(await api.problem(400, "POST", "/v1/records/lookup", lookup)).toMatchObject({
      field: "buckets[0].type",
    });
    expect(await api.problem(400, "GET", "/v1/records/NONE/x", { key: "router" })).toMatchObject({
      field: "bucket_type",
    });
  });

  test("shows its types in openapi.json and on the reference page", async () => {
    await declare();
    const isolate = new Api();
    const { text } = await isolate.send("GET", "/openapi.json", { key: null });
    const { components } = JSON.parse(text) as {
      components: { schemas: Record<string, { enum: string[] }> };
    };
    expect(components.schemas["BucketType"]?.enum).toEqual(["HANDLES", "STORES", "VOUCHERS"]);
    expect(text).not.toContain("RAILS_TABLE");
    const page = await isolate.send("GET", "/docs", { key: null });
    expect(page.text).toContain("<code>VOUCHERS</code>");
    expect(page.text).not.toContain("RAILS_TABLE");
  });
});

describe("a change of the types", () => {
  const changed = (type: string, entry: object): TypesDocument => ({
    ...own,
    bucket_types: { ...own.bucket_types, [type]: entry as { number: number } },
  });

  test("[T3] is planned and applied as a whole", async () => {
    const { version } = await read();
    expect(version).toBe(0);
    const plan = await api.json<Plan>(200, ...put(own, version, { dry_run: true }));
    expect(plan).toMatchObject({ version: 0, dry_run: true, refusals: [] });
    expect(plan.changes).toContainEqual({
      entry: "bucket_types.HANDLES",
      change: "add",
      before: null,
      after: { form: "plain", script: "single", case: "folded", ...own.bucket_types["HANDLES"] },
    });
    expect((await read()).types).toMatchObject({ bucket_types: { ROUTES: { number: 1 } } });
    const done = await declare();
    expect(done.types.bucket_types).toHaveProperty("VOUCHERS");
    expect((await read()).types).toEqual(done.types);
    // A repeated call does no harm.
    expect(await api.json<Plan>(200, ...put(own, version))).toMatchObject({
      version: done.version,
      changes: [],
    });
  });

  test("[T2] [T3] is refused if it concerns a type in use, and changes nothing", async () => {
    await declare();
    await claimed("VOUCHERS", "aBc");
    const before = await read();
    expect(before.in_use).toEqual({
      bucket_types: ["VOUCHERS"],
      subject_types: ["PERSON"],
      source_types: ["PEOPLE"],
    });
    const { VOUCHERS: _, ...others } = own.bucket_types;
    for (const types of [
      changed("VOUCHERS", { number: 3, script: "any" }),
      changed("VOUCHERS", { number: 9, script: "any", case: "exact" }),
      { ...own, bucket_types: others },
      { ...own, bucket_types: { ...others, CODES: own.bucket_types["VOUCHERS"] } },
      { ...own, source_types: { SHOPS: { number: 2 } } },
    ]) {
      const refused = await api.problem(409, ...put(types, before.version));
      expect(refused).toMatchObject({ code: "FAILED_PRECONDITION", reason: "TYPE_IN_USE" });
      const plan = await api.json<Plan>(200, ...put(types, before.version, { dry_run: true }));
      expect(plan.refusals).toMatchObject([{ entry: refused.field }]);
    }
    expect(await read()).toEqual(before);
    // A type that is not in use may change in every way.
    await declare(changed("HANDLES", { number: 8, case: "exact" }));
    await api.json(201, ...begin("2", "HANDLES", "Ada"));
    await api.json(201, ...begin("1", "HANDLES", "ada"));
  });

  test("[T3] is refused if somebody else has changed the types", async () => {
    const { version } = await read();
    await declare();
    expect(await api.problem(409, ...put(gitlabTypes, version))).toMatchObject({
      reason: "CONCURRENT_CHANGE",
    });
    expect((await read()).types.bucket_types).toHaveProperty("HANDLES");
  });

  test("names the entry that is wrong, and changes nothing", async () => {
    const { version } = await read();
    for (const [field, types] of [
      ["bucket_types.HANDLES.colour", changed("HANDLES", { number: 1, colour: "red" })],
      ["bucket_types.STORES.number", changed("HANDLES", { number: 2 })],
      ["bucket_types.HANDLES.pattern", changed("HANDLES", { number: 1, pattern: "(?=a)b" })],
      ["types.source_types", { ...own, source_types: undefined }],
    ] as const)
      expect(await api.problem(400, ...put(types, version))).toMatchObject({ field });
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`T${n}`, { number: n + 1 }]));
    const tooMany = await api.problem(400, ...put({ ...own, subject_types: many(257) }, version));
    expect(tooMany).toMatchObject({ field: "subject_types", code: "INVALID_ARGUMENT" });
    // Far too many are refused before they are all read.
    await api.problem(400, ...put({ ...own, subject_types: many(10_000) }, version));
    const rule = { form: "path", script: "any", case: "exact", pattern: ".*", min_length: 1, max_length: 9 };
    const full = Object.fromEntries(
      Object.entries(many(256)).map(([name, { number }]) => [name, { number, ...rule }]),
    );
    const all = { bucket_types: full, subject_types: many(256), source_types: many(256) };
    await api.json(200, ...put(all, version, { dry_run: true }));
    expect((await read()).version).toBe(version);
  });

  test("[T4] reaches an isolate with the old set before it refuses or looks up anything", async () => {
    await declare(changed("HANDLES", { number: 1, case: "exact" }));
    const behind = new Api();
    const lookUp = ["GET", "/v1/records/HANDLES/Ada", { key: "router" }] as const;
    await behind.problem(404, ...lookUp);
    // Another isolate changes the rule, adds a type, and a cell takes a name under the new rule.
    await declare({ ...own, source_types: { ...own.source_types, FIRMS: { number: 3 } } });
    await claimed("HANDLES", "ada", { source: "FIRMS" });
    expect(await behind.json(200, ...lookUp)).toMatchObject({ record: { source: { type: "FIRMS" } } });
    await behind.problem(409, ...begin("2", "HANDLES", "ADA"));
    await behind.json(200, "GET", "/v1/cells/1/records?source_type=FIRMS", { key: "cell 1" });
  });
});

describe("who may", () => {
  test.each(["cell 1", "router"] as const)("a %s may list the types, and not change them", async (key) => {
    const { types } = await declare();
    expect(await api.json(200, "GET", "/v1/types", { key })).toEqual({ types });
    await api.problem(403, "GET", "/v1/admin/types", { key });
    await api.problem(403, "PUT", "/v1/admin/types", { key, body: { version: 0, types: own } });
  });
});

test("[T6] [H8] a directory that has lost its types gets them back from D1, all of them in use", async () => {
  const restore = await saveDirectory("1", "2");
  await declare();
  await claimed("HANDLES", "ada");
  const before = await read();
  await runCron(env, Date.now());
  await restore();
  // Nobody has told the directory, but D1 has seen more of it. Nothing can be declared from now on.
  expect(await new Api().problem(503, ...put(gitlabTypes, 0))).toMatchObject({ reason: "HISTORY_LOST" });
  // What is left of the set would look like one from which types were removed.
  expect(await new Api().problem(503, "GET", "/v1/types")).toMatchObject({ reason: "HISTORY_LOST" });
  const reason = "restored from a backup";
  const path = "/v1/admin/parts/directory/reconcile";
  const plan = await api.json(200, "POST", path, { body: { dry_run: true, reason } });
  expect(plan).toMatchObject({ restored: { types: expect.arrayContaining(["HANDLES", "PEOPLE"]) } });
  await api.json(200, "POST", path, { body: { dry_run: false, reason } });
  const after = await read();
  expect(after.types).toEqual(before.types);
  expect(after.in_use["bucket_types"]).toEqual(["HANDLES", "STORES", "VOUCHERS"]);
  await new Api().problem(409, ...begin("2", "HANDLES", "ADA"));
});

test("[T6] D1 serves an isolate for as long as it lives", async () => {
  await declare();
  await claimed("HANDLES", "ada");
  await runCron(env, Date.now());
  const down = { getByName: () => ({ types: () => Promise.reject(new Error("the directory is down")) }) };
  const { types } = new Deployment({ ...env, DIRECTORY: down as unknown as typeof env.DIRECTORY });
  const handles = { kind: "bucket", name: "HANDLES", field: "bucket_type" } as const;
  // D1 allows 1,000 statements per request.
  for (let request = 0; request < 1_100; request += 1)
    expect((await types.forRead([handles])).ok, `request ${request}`).toBe(true);
});

test("[T2] [T6] no type with a claim is lost if the directory goes back before the cron runs", async () => {
  const restore = await saveDirectory("1", "2");
  await declare();
  // D1 gets the set after the answer. Here it does not.
  await env.DB.prepare("DELETE FROM type_sets").run();
  await claimed("HANDLES", "ada");
  await restore();
  const other = { ...own, bucket_types: { HANDLES: { number: 1, case: "exact" } } };
  expect(await new Api().problem(503, ...put(other, 0))).toMatchObject({ reason: "HISTORY_LOST" });
  const path = "/v1/admin/parts/directory/reconcile";
  await api.json(200, "POST", path, { body: { dry_run: false, reason: "restored from a backup" } });
  const after = await read();
  expect(after.types.bucket_types["HANDLES"]).toMatchObject(own.bucket_types["HANDLES"] ?? {});
  expect(after.in_use["bucket_types"]).toContain("HANDLES");
  await new Api().problem(409, ...begin("2", "HANDLES", "ADA"));
});
