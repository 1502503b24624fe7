import { describe, expect, onTestFinished, test, vi } from "vitest";
import openapi from "../../../openapi.json";
import { version } from "../../../package.json";
import { errorCodes } from "../../../src/coordinator/kernel/refusal.ts";
import { errorsOf, routeIds, routes } from "../../../src/coordinator/api/contract.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { openApiOf } from "../../../src/coordinator/api/openapi.ts";
import { html, inline } from "../../../src/coordinator/api/docs/markup.ts";
import { VERSION } from "../../../src/coordinator/api/version.ts";
import { Api } from "../../support/workerd/api.ts";

interface Schema {
  properties?: object;
  anyOf?: readonly object[];
  enum?: readonly unknown[];
}

/** Whether generators make a type of its own of the schema. */
const isInPlace = ({ anyOf = [], enum: values, properties }: Schema): boolean =>
  values !== undefined ||
  properties !== undefined ||
  anyOf.filter((each) => !("type" in each && each.type === "null")).length > 1;

describe("openapi.json", () => {
  test("is up to date with the contract; if not, run `npm run generate:openapi`", () => {
    expect(openapi).toEqual(JSON.parse(JSON.stringify(openApiOf(version))));
  });

  test("has the version of the Worker", () => expect(VERSION).toBe(version));

  test("is the same every time it is generated", () =>
    expect(JSON.stringify(openApiOf("1"))).toBe(JSON.stringify(openApiOf("1"))));

  test("is served", async () => {
    const { json, headers } = await new Api().send("GET", "/openapi.json", { key: null });
    expect(json).toEqual(openapi);
    expect(headers.get("cache-control")).toContain("max-age");
  });

  test("is encoded once for all callers", async () => {
    const api = new Api();
    const read = async (): Promise<string> => (await api.send("GET", "/openapi.json", { key: null })).text;
    const first = await read();
    const stringify = vi.spyOn(JSON, "stringify");
    onTestFinished(() => stringify.mockRestore());
    expect(await read()).toBe(first);
    expect(stringify.mock.results.filter(({ value }) => first.startsWith(value as string))).toHaveLength(0);
  });

  test("has every route, and no broken references", () => {
    const ids = Object.values(openapi.paths).flatMap((path) =>
      Object.values(path as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
    );
    expect(ids.toSorted()).toEqual(routeIds.toSorted());
    const text = JSON.stringify(openapi);
    expect(text).not.toContain("#/$defs");
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
      expect(openapi.components.schemas).toHaveProperty(name ?? "");
  });

  test("makes no generator name two types alike, or like a type of the language", () => {
    const schemas = Object.entries<Schema>(openapi.components.schemas);
    // A type that a property describes in place gets the name of both, in generators' own case.
    const inPlace = schemas.flatMap(([name, { properties = {} }]) =>
      Object.entries<Schema>({ ...properties })
        .filter(([, schema]) => isInPlace(schema))
        .map(([property]) => `${name}_${property}`.replaceAll("_", "").toLowerCase()),
    );
    const names = schemas.map(([name]) => name);
    const all = [...inPlace, ...names.map((name) => name.toLowerCase())];
    expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
    // Generated clients use these types without an import.
    const ofTheLanguage = new Set(["Awaited", "Exclude", "Omit", "Partial", "Pick", "Readonly", "Record"]);
    expect(names.filter((name) => ofTheLanguage.has(name) || name in globalThis)).toEqual([]);
  });

  test("lists every parameter of every path", () => {
    for (const id of routeIds) {
      const { path, method } = routes[id];
      const operation = (
        openapi.paths as unknown as Record<
          string,
          Record<string, { parameters?: { name: string; in: string }[] }>
        >
      )[path]?.[method.toLowerCase()];
      const named =
        operation?.parameters?.flatMap((parameter) => (parameter.in === "path" ? [parameter.name] : [])) ??
        [];
      expect(named).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
    }
  });
});

test("[O3] the routes of all changes that need room for an audit entry declare AUDIT_FULL", () => {
  const refused = routeIds.filter((id) => errorsOf(routes[id]).some(({ reason }) => reason === "AUDIT_FULL"));
  const changing = routeIds.filter((id) => {
    const { method, roles, group }: Route = routes[id];
    // A step of a scrub changes nothing but its own record (Z1), one of a growth makes no change (O1), and a
    // removal starts with its first step (X2).
    if (["stepScrub", "stepGrowth", "approveRemoval"].includes(id)) return false;
    const isChange = method !== "GET" && roles.includes("operator") && !roles.includes("viewer");
    return isChange && group !== "webhooks" && group !== "verification" && id !== "reconcilePart";
  });
  expect(refused).toEqual(changing);
});

describe("the reference page", () => {
  const page = async (): Promise<{ text: string; headers: Headers }> =>
    new Api().send("GET", "/docs", { key: null });

  test("has an anchor for every route, code and schema", async () => {
    const { text } = await page();
    for (const id of routeIds) expect(text).toContain(`id="${id}"`);
    for (const code of Object.keys(errorCodes)) expect(text).toContain(`id="error-${code.toLowerCase()}"`);
    for (const name of Object.keys(openapi.components.schemas)) expect(text).toContain(`id="schema-${name}"`);
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, anchor] of text.matchAll(/href="#([^"]+)"/g)) expect(ids).toContain(anchor);
  });

  test("loads nothing and has no scripts", async () => {
    const { text, headers } = await page();
    expect(text).not.toMatch(/<(script|link|img|iframe|object|form)\b/i);
    expect(text).not.toMatch(/\s(on\w+|style|src)=/i);
    expect(text).not.toMatch(/url\(|@import/);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain("unsafe");
    const style = /<style>([^]*)<\/style>/.exec(text)?.[1] ?? "";
    const hash = btoa(
      String.fromCharCode(
        ...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(style))),
      ),
    );
    expect(policy).toContain(`style-src 'sha256-${hash}'`);
  });

  test("closes every element that it opens", async () => {
    const { text } = await page();
    const open: string[] = [];
    const empty = new Set(["meta", "wbr", "br"]);
    for (const [, closing, name = ""] of text
      .replace(/<style>[^]*<\/style>/, "")
      .matchAll(/<(\/?)([a-z][a-z0-9]*)[^>]*>/g)) {
      if (closing) expect(open.pop()).toBe(name);
      else if (!empty.has(name)) open.push(name);
    }
    expect(open).toEqual([]);
  });

  test("escapes values", () => {
    expect(html`<p title="${'"'}">${"<b>&'"}${inline("`<i>` **x** *y*")}</p>`.text).toBe(
      '<p title="&#34;">&#60;b&#62;&#38;&#39;<code>&#60;i&#62;</code> <strong>x</strong> <em>y</em></p>',
    );
  });
});
