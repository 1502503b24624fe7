import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { CANONICAL_VERSION, canonicalize } from "../../../src/common/canonical/canonicalize.ts";
import { ruleOf, type BucketTypeName } from "../../support/types.ts";

interface Golden {
  canonical_version: number;
  max_bytes: number;
  vectors: [type: BucketTypeName, typed: string, canonical: string | { refusal: string }][];
}

const FROZEN =
  "The canonical form of stored names has changed. golden.json must not change: a new canonical form needs " +
  "a new CANONICAL_VERSION, a plan for the names that are already claimed, and vectors of its own.";

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf8")) as Golden;

describe("golden vectors of the canonical form", () => {
  it("are for the current version", () => {
    expect(CANONICAL_VERSION, FROZEN).toBe(golden.canonical_version);
    expect(golden.vectors.length).toBeGreaterThanOrEqual(200);
  });

  const through = (form: typeof canonicalize) =>
    golden.vectors.map(([type, typed]) => {
      const result = form(ruleOf(type), typed, golden.max_bytes);
      return [type, typed, result.ok ? result.canonical : { refusal: result.refusal }];
    });

  it("have the frozen results", () => {
    expect(through(canonicalize), FROZEN).toEqual(golden.vectors);
  });

  it("have the frozen results in an isolate that has not decoded its tables yet", async () => {
    vi.resetModules();
    const fresh = await import("../../../src/common/canonical/canonicalize.ts");
    expect(fresh.canonicalize).not.toBe(canonicalize);
    expect(through(fresh.canonicalize), FROZEN).toEqual(golden.vectors);
  });
});
