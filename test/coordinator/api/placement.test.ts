/** Tests of what an isolate knows of the number of shards. */
import { describe, expect, test } from "vitest";
import { placementOf, type Placement } from "../../../src/coordinator/kernel/placement.ts";
import { ok, refused, type Result } from "../../../src/coordinator/kernel/refusal.ts";
import { Deployment } from "../../../src/coordinator/isolate/deployment.ts";
import { configOf } from "../../../src/coordinator/env.ts";
import { KnownPlacement } from "../../../src/coordinator/isolate/known-placement.ts";
import { objectsOf } from "../../../src/coordinator/objects/objects.ts";
import { env } from "../../support/workerd/api.ts";

const mismatch = (placement: Placement): Result<never> =>
  refused("UNAVAILABLE", "another placement", { reason: "PLACEMENT_MISMATCH", placement });

describe("the placement that an isolate knows", () => {
  test("begins with a guess, which the first placement in force replaces", () => {
    const known = new KnownPlacement(16);
    expect(known.current).toBe(placementOf(16));
    known.learn(placementOf(4));
    expect(known.shards).toBe(4);
  });

  test("only grows after that", () => {
    const known = new KnownPlacement(16);
    for (const shards of [4, 5, 4, 5]) known.learn(placementOf(shards));
    expect(known.shards).toBe(5);
  });

  test("is never one that this code computes differently", () => {
    const known = new KnownPlacement(4);
    known.learn(placementOf(8).replace("canonical", "canonical9"));
    known.learn("nonsense");
    expect(known.shards).toBe(4);
  });

  test("is learned from the refusals of every kind of object", async () => {
    for (const kind of ["shard", "ledger", "directory"] as const) {
      const known = new KnownPlacement(4);
      const part = { getByName: () => ({ part: async () => mismatch(placementOf(9)) }) };
      const stubs = { CLAIM_SHARD: part, CELL_LEDGER: part, DIRECTORY: part };
      const objects = objectsOf(stubs as never, configOf(env), [known]);
      const asked =
        kind === "shard" ? objects.shard(0) : kind === "ledger" ? objects.ledger("1") : objects.directory();
      expect(await asked.part({ placement: known.current })).toMatchObject({ ok: false });
      expect(known.shards).toBe(9);
    }
  });
});

describe("a request", () => {
  const sentBy = ({ shards, envelope }: Deployment): [number, Placement] => [shards, envelope.placement];

  test("runs again with the placement that an object has refused it with", async () => {
    const deployment = new Deployment(env);
    const sent: [number, Placement][] = [];
    const result = await deployment.placed(async (placed) => {
      sent.push(sentBy(placed));
      if (sent.length > 1) return ok("done");
      deployment.placement.learn(placementOf(9));
      return mismatch(placementOf(9));
    });
    expect(result).toEqual(ok("done"));
    expect(sent).toEqual([
      [4, placementOf(4)],
      [9, placementOf(9)],
    ]);
  });

  test("keeps one placement while it runs", async () => {
    const deployment = new Deployment(env);
    await deployment.placed(async (placed) => {
      deployment.placement.learn(placementOf(9));
      expect(sentBy(placed)).toEqual([4, placementOf(4)]);
      return ok(null);
    });
    expect(deployment.shards).toBe(9);
  });

  test("does not run again after a success, another refusal, or without a newer placement", async () => {
    for (const result of [ok(null), refused("NOT_FOUND", "no"), mismatch(placementOf(2))]) {
      const deployment = new Deployment(env);
      deployment.placement.learn(placementOf(4));
      let runs = 0;
      const ended = await deployment.placed(async (): Promise<Result<null>> => {
        runs += 1;
        if (result.ok || result.refusal.reason === undefined) deployment.placement.learn(placementOf(9));
        return result;
      });
      expect({ ended, runs }).toEqual({ ended: result, runs: 1 });
    }
  });

  test("runs three times at most, however fast the deployment grows", async () => {
    const deployment = new Deployment(env);
    let runs = 0;
    const result = await deployment.placed(async () => {
      runs += 1;
      deployment.placement.learn(placementOf(4 + runs));
      return mismatch(deployment.placement.current);
    });
    expect({ runs, isRefused: !result.ok }).toEqual({ runs: 3, isRefused: true });
  });

  test("that is traced keeps its traces in every run", async () => {
    const deployment = new Deployment(env);
    const traced = deployment.tracedBy({ traces: ["00-a-b-01"] } as never);
    await traced.placed(async (placed) => {
      expect(placed.envelope).toMatchObject({ placement: placementOf(4), traces: ["00-a-b-01"] });
      return ok(null);
    });
  });
});
