import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import openapi from "../../../openapi.json" with { type: "json" };
import { defaultLimits, limitTable, type LimitName } from "../../../src/common/limits.ts";
import { MAX_TYPES } from "../../../src/common/types/document.ts";
import { MAX_CLAIMS } from "../../../src/coordinator/capabilities/identities/edge/routes.ts";
import { routeIds, routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { boundedList, listLimitsOf } from "../../../src/coordinator/api/contract/lists.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { pathOf } from "../../suites/conformance/paths.ts";
import { Api, env, startDeployment } from "../../support/workerd/api.ts";
import { counting } from "../../support/workerd/counting.ts";

beforeAll(async () => void (await startDeployment("1")));

interface List {
  id: RouteId;
  path: string;
  limit: LimitName | number;
}

const listsIn = (part: "query" | "body"): List[] =>
  routeIds.flatMap((id) => {
    const route: Route = routes[id];
    const schema = part === "query" ? route.query : (route.body?.schema ?? z.strictObject({}));
    return [...listLimitsOf(schema)].map(([path, limit]) => ({ id, path, limit }));
  });

/** Objects with a field for each of their items. */
const records = listsIn("body").filter(({ path }) => /^types\.|\.claims$/.test(path));
const typeRecords = records.filter(({ path }) => path.startsWith("types."));
const arrays = listsIn("body").filter((list) => !records.some(({ path }) => path === list.path));

const valueOf = (limit: LimitName | number): number =>
  typeof limit === "number" ? limit : defaultLimits[limit];

/** Sends items that are all wrong. If they were validated before they are counted, item 0 would be named. */
async function refusedBody({ id, path }: List, items: string, using = new Api()): Promise<unknown> {
  const { method, roles } = routes[id] as Route;
  const key = roles === "anyone" || roles.includes("cell") ? "cell 1" : "operator";
  return using.problem(400, method, pathOf(routes[id], {}), {
    key,
    raw: `{${path
      .split(".")
      .map((part) => `${JSON.stringify(part.replace("[]", ""))}:[`)
      .join("{")}${items}`,
    headers: { "content-type": "application/json" },
  });
}

/** The list in an answer's `field`: that of the first item of each list around it. */
const placeOf = ({ path }: List): string => path.replaceAll("[]", "[0]");

/** What ends the body behind the list. */
const endOf = ({ path }: List): string => "}]".repeat(path.split(".").length - 1) + "}";

const wrongItems = (count: number, item = "{}"): string => Array.from({ length: count }, () => item).join();

test("the contract has the lists that these tests are about", () => {
  expect(listsIn("body").map(({ id, path }) => `${id} ${path}`)).toEqual([
    "beginLease creates",
    "beginLease destroys",
    "beginLease replaces",
    "beginLeaseWithNewId creates",
    "beginLeaseWithNewId destroys",
    "beginLeaseWithNewId replaces",
    "lookupRecords buckets",
    "digestRecords bucket_types",
    "digestRecords ranges",
    "lookupRoutes names",
    "classify claims",
    "approveRemoval export",
    "changeIdentities issuers",
    "changeIdentities issuers[].algorithms",
    "changeIdentities issuers[].keys",
    "changeIdentities issuers[].rules",
    "changeIdentities issuers[].rules[].claims",
    "changeIdentities authorities",
    "changeIdentities authorities[].rules",
    "changeTypes types.bucket_types",
    "changeTypes types.subject_types",
    "changeTypes types.source_types",
    "addWebhook events",
    "changeWebhook events",
  ]);
  expect(records.map(({ limit }) => limit)).toEqual([MAX_CLAIMS, MAX_TYPES, MAX_TYPES, MAX_TYPES]);
  expect(listsIn("query").map(({ id, path }) => `${id} ${path}`)).toEqual([
    "listRecords bucket_type",
    "exportRecords bucket_type",
    "listCredentialUses id",
  ]);
});

describe("a list in the body of", () => {
  test.each(arrays.map((list) => [`${list.id}: ${list.path}`, list] as const))(
    "%s is refused at the first item that is too many, before any item is validated",
    async (_, list) => {
      const most = valueOf(list.limit);
      const counted = counting(env);
      // The text ends in something that is not JSON, which is never read.
      const refused = await refusedBody(
        list,
        `${wrongItems(most + 1)}, not JSON`,
        new Api({ ...counted.env }),
      );
      expect(refused).toMatchObject({
        code: "INVALID_ARGUMENT",
        field: `${placeOf(list)}[${most}]`,
        detail: expect.stringContaining(`beyond the limit of ${most} items`),
      });
      expect(counted.calls).toEqual([]);
      expect(await refusedBody(list, `${wrongItems(60_000)}]${endOf(list)}`)).toMatchObject({
        field: `${placeOf(list)}[${most}]`,
      });
      // A field that the body lacks may come first.
      expect(await refusedBody(list, `${wrongItems(most)}]${endOf(list)}`)).toMatchObject({
        field: expect.stringMatching(/^[a-z_]+\[0\]|^(?:source_type|reason|url|version)$/),
      });
    },
  );

  test("any route, with the largest limits, may have items with as many faults as possible", async () => {
    const largest = new Api({
      LEASEHOLD_BATCH_OPS: String(limitTable.batchOps.max),
      LEASEHOLD_LOOKUP_BUCKETS: String(limitTable.lookupBuckets.max),
      LEASEHOLD_DIGEST_RANGES: String(limitTable.digestRanges.max),
      LEASEHOLD_BODY_BYTES: String(limitTable.bodyBytes.max),
    });
    const worst = '{"bucket":{"x":1},"subject":{"x":1},"source":{"x":1},"epoch":"","x":1,"type":1}';
    for (const list of arrays) {
      const most = typeof list.limit === "number" ? list.limit : limitTable[list.limit].max;
      const text = `${wrongItems(most, worst)}]${endOf(list)}`;
      const { code } = (await refusedBody(list, text, largest)) as { code: string };
      expect(code).toBe("INVALID_ARGUMENT");
    }
  });
});

describe("an object with a field for each item, in the body of", () => {
  const small = { A: { number: 1 } };
  const put = (path: string, fields: string, using = new Api()) => {
    const lists = ["bucket_types", "subject_types", "source_types"].map((name) =>
      path === `types.${name}` ? `"${name}":{${fields}` : `"${name}":${JSON.stringify(small)},`,
    );
    // The list under test comes last, so that its text may end in something that is not JSON.
    const types = lists.toSorted((one) => (one.endsWith(",") ? -1 : 1)).join("");
    return using.problem(400, "PUT", "/v1/admin/types", {
      raw: `{"version":0,"types":{${types}`,
      headers: { "content-type": "application/json" },
    });
  };
  const fieldsOf = (count: number): string =>
    Array.from({ length: count }, (_, n) => `"T${n}":{"number":${n + 1}}`).join();

  test.each(typeRecords.map(({ path }) => path))(
    "changeTypes: %s has a limited number of fields, and far too many are not parsed",
    async (path) => {
      const name = path.slice("types.".length);
      const counted = counting(env);
      // The text ends in something that is not JSON, which is never read.
      const many = await put(path, `${fieldsOf(10_000)}, not JSON`, new Api({ ...counted.env }));
      expect(many).toMatchObject({
        code: "INVALID_ARGUMENT",
        field: expect.stringMatching(new RegExp(`^${path}\\.T\\d+`)) as unknown,
        detail: expect.stringContaining("fields and items in one body") as unknown,
      });
      expect(counted.calls).toEqual([]);
      for (const count of [MAX_TYPES + 1, 2_000]) {
        const full = JSON.parse(`{${fieldsOf(count)}}`) as object;
        const types = { bucket_types: small, subject_types: small, source_types: small, [name]: full };
        const refused = await new Api().problem(400, "PUT", "/v1/admin/types", {
          body: { version: 0, types },
        });
        expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", field: name });
      }
    },
  );
});

test.each(listsIn("query"))(
  "a parameter of $id: $path may be given a limited number of times",
  async (list) => {
    const most = valueOf(list.limit);
    // No list allows this value.
    const times = (count: number): string => Array.from({ length: count }, () => `${list.path}=.`).join("&");
    const isOfCell = routes[list.id].path.includes("{cell}");
    const path = `${pathOf(routes[list.id], {})}?${isOfCell ? "source_type=RAILS_TABLE_ROUTES&" : ""}`;
    const key = isOfCell ? "cell 1" : "operator";
    const ask = (count: number) => new Api().problem(400, "GET", `${path}${times(count)}`, { key });
    expect(await ask(most + 1)).toMatchObject({ field: `${list.path}[${most}]` });
    expect(await ask(most)).toMatchObject({ field: `${list.path}[0]` });
  },
);

test("every list of every request has `maxItems` or `maxProperties` in openapi.json", () => {
  const lists: unknown[] = [];
  const objects: unknown[] = [];
  const unbounded: string[] = [];
  const visit = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    const schema = value as Record<string, unknown>;
    if (typeof schema["$ref"] === "string") {
      const name = schema["$ref"].split("/").at(-1) ?? "";
      visit((openapi.components.schemas as Record<string, unknown>)[name], `${place} ${name}`);
    }
    if (schema["type"] === "array") {
      lists.push(schema);
      if (typeof schema["maxItems"] !== "number") unbounded.push(place);
    }
    if (schema["propertyNames"] !== undefined) {
      objects.push(schema);
      if (typeof schema["maxProperties"] !== "number") unbounded.push(place);
    }
    for (const [name, part] of Object.entries(schema)) visit(part, `${place}.${name}`);
  };
  for (const [path, methods] of Object.entries(openapi.paths))
    for (const [method, operation] of Object.entries(methods as Record<string, Record<string, unknown>>)) {
      const { requestBody, parameters = [] } = operation;
      visit((requestBody as { content?: unknown } | undefined)?.content, `${method} ${path}`);
      for (const { schema } of parameters as { schema: unknown }[]) visit(schema, `${method} ${path}`);
    }
  expect(unbounded).toEqual([]);
  // Beside the lists of values in claims, whose handler counts them.
  expect(lists).toHaveLength(arrays.length + listsIn("query").length + 1);
  expect(objects).toHaveLength(records.length);
});

test("a list without a limit cannot be part of a request", () => {
  const inner = boundedList(z.string(), 3, { description: "Text." });
  expect([
    ...listLimitsOf(
      z.strictObject({ a: boundedList(z.strictObject({ b: inner }), 5, { description: "Items." }) }),
    ),
  ]).toEqual([
    ["a", 5],
    ["a[].b", 3],
  ]);
  for (const hidden of [
    z.array(z.string()),
    z.array(z.string()).optional(),
    z.union([z.string(), z.array(z.string())]),
    inner.min(1),
    z.record(z.string(), z.string()),
    boundedList(z.array(z.string()), 3, { description: "Lists." }),
  ])
    expect(() => listLimitsOf(z.strictObject({ hidden }))).toThrow(/hidden.* has no limit; use boundedList/);
  expect(() => listLimitsOf(z.strictObject({ hidden: z.tuple([z.string()]) }))).toThrow(
    /hidden of a request has a kind/,
  );
});
