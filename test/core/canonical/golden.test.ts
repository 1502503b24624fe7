import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { CANONICAL_VERSION, canonicalize } from "../../../src/core/canonical/canonicalize.ts";
import type { BucketTypeName } from "../../../src/core/registry.ts";

interface Golden {
  canonical_version: number;
  max_bytes: number;
  vectors: [type: BucketTypeName, typed: string, canonical: string | { refusal: string }][];
}

const FROZEN =
  "The canonical form of stored names has changed. golden.json is frozen: such a change needs a new CANONICAL_VERSION, " +
  "with a plan for the names that are already claimed, and vectors of its own.";

const golden = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf8")) as Golden;

describe("golden vectors of the canonical form", () => {
  it("are those of the version in use", () => {
    expect(CANONICAL_VERSION, FROZEN).toBe(golden.canonical_version);
    expect(golden.vectors.length).toBeGreaterThanOrEqual(200);
  });

  const through = (form: typeof canonicalize) =>
    golden.vectors.map(([type, typed]) => {
      const result = form(type, typed, golden.max_bytes);
      return [type, typed, result.ok ? result.canonical : { refusal: result.refusal }];
    });

  it("come out as they did when they were frozen", () => {
    expect(through(canonicalize), FROZEN).toEqual(golden.vectors);
  });

  it("come out the same of an isolate that has yet to decode its tables", async () => {
    vi.resetModules();
    const fresh = await import("../../../src/core/canonical/canonicalize.ts");
    expect(fresh.canonicalize).not.toBe(canonicalize);
    expect(through(fresh.canonicalize), FROZEN).toEqual(golden.vectors);
  });
});
