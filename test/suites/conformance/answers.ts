/** Tests of what is true for every answer, and of the routes without a key. */
import { beforeAll, expect, test } from "vitest";
import { problemIn, type Client } from "./client.ts";
import type { Open } from "./coordinator.ts";

export function answerSuite(open: Open): void {
  let api: Client;

  beforeAll(async () => {
    api = await open();
  });

  test("an unknown path is a problem, with or without a key", async () => {
    for (const path of [
      "/nope",
      "/v1",
      "/v1/",
      "/v1/cells/",
      "/v1/reports",
      "/v1/cells//leases",
      "/v1/cells/1/leases/",
      "/V1/limits",
      "//",
      "/v1/%6cimits",
      "/v1/records",
      "/healthz/",
    ]) {
      for (const key of [null, "operator"] as const)
        expect([path, (await api.problem(404, "GET", path, { key })).code]).toEqual([path, "NOT_FOUND"]);
    }
  });

  test("every answer has a new request id, whatever id the caller sent", async () => {
    const given = "2b1f5cb8-6f7d-4d5c-9f9c-0d8a1f5b2d11";
    const ids = new Set<string | null>([given]);
    for (const id of [given, given, "mine", "x".repeat(65), "a b", "<b>", '"']) {
      const sent = await api.send("GET", "/nope", { key: null, headers: { "x-request-id": id } });
      const { request_id: made } = problemIn(sent);
      expect(made).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
      expect(sent.headers.get("x-request-id")).toBe(made);
      ids.add(made);
    }
    expect(ids.size).toBe(8);
  });

  test("no answer may be cached, sniffed, framed or run as script", async () => {
    for (const path of ["/healthz", "/nope", "/v1/limits", "/v1/records/ROUTES/x"]) {
      const { headers } = await api.send("GET", path, { key: "operator" });
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      expect(headers.has("access-control-allow-origin")).toBe(false);
    }
  });

  test("health and readiness need no key", async () => {
    expect(await api.json(200, "GET", "/healthz", { key: null })).toMatchObject({ status: "ok" });
    expect(await api.json(200, "GET", "/readyz", { key: null })).toMatchObject({ status: "ok", d1: "up" });
  });
}
