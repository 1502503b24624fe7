import { describe, expect, test } from "vitest";
import { createRoutes, type RoutesOptions } from "../../../src/users/router/index.ts";

const given: RoutesOptions = { url: "https://leasehold.example.com", key: "secret" };

describe("an option that is wrong is named", () => {
  test.each<[string, Record<string, unknown>]>([
    ["url", { url: "leasehold.example.com" }],
    ["url", { url: "https://leasehold.example.com/path" }],
    ["url", { url: "https://user:password@leasehold.example.com" }],
    ["url", { url: "ftp://leasehold.example.com" }],
    ["url", { url: undefined }],
    ["key", { key: "" }],
    ["key", { key: "two\nlines" }],
    ["key", { key: undefined }],
    ["reports", { reports: "yes" }],
    ["maxAgeMs", { maxAgeMs: -1 }],
    ["boundMs", { boundMs: Number.NaN }],
    ["reportedMaxAgeMs", { reportedMaxAgeMs: Infinity }],
    ["negativeMaxAgeMs", { negativeMaxAgeMs: "1" }],
    ["graceMs", { graceMs: -0.5 }],
    ["memoryBytes", { memoryBytes: 1_000 }],
    ["timeoutMs", { timeoutMs: 0 }],
  ])("%s: %j", (option, wrong) => {
    const create = (): unknown => createRoutes({ ...given, ...wrong });
    expect(create).toThrow(`\`${option}\``);
    expect(create).not.toThrow(/secret|password|two/);
  });
});

test("the key is read before every request", async () => {
  const sent: string[] = [];
  let key = "first";
  const routes = createRoutes({
    ...given,
    key: () => Promise.resolve(key),
    maxAgeMs: 0,
    reports: false,
    fetch: (_, { headers }) => {
      sent.push(headers["authorization"] ?? "");
      return Promise.resolve(new Response("{}", { status: 500 }));
    },
  });
  await routes.find({ type: "ROUTES", value: "a" });
  key = "second";
  await routes.find({ type: "ROUTES", value: "a" });
  expect(sent).toEqual(["Bearer first", "Bearer second"]);
  routes.close();
});

test("the platform's fetch and clock are used by default", async () => {
  const routes = createRoutes({ url: "http://127.0.0.1:1", key: "secret" });
  expect(await routes.find({ type: "ROUTES", value: "a" })).toMatchObject({ kind: "unavailable" });
  routes.close();
});
