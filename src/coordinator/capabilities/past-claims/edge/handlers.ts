import type { BucketKey } from "../../../kernel/messages.ts";
import { shardOf } from "../../../kernel/placement.ts";
import { ok } from "../../../kernel/refusal.ts";
import { storedTypes, toApiPeriod, timeOf } from "../../../api/answers.ts";
import { historyRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { keyInPath, keyOfBucket } from "../../../isolate/lookup.ts";
import { operatorOf, reasonFault } from "../../../api/operator.ts";
import { pageOf } from "../../../api/paging.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";

const historyHandlers: Handlers<typeof historyRoutes> = {
  async listHistory(call) {
    const { deployment, params, query } = call;
    const key = await keyInPath(deployment, params);
    if (!key.ok) return key;
    // A token has the epoch of the last period that was visited.
    const page = await pageOf<number>(call);
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const { objects, envelope, config, types } = deployment;
    const shard = shardOfKey(deployment, key.value);
    const listed = await reach(readTimeoutMs(config.limits), { name: `shard ${shard}` }, () =>
      objects.shard(shard).listPeriods({
        ...envelope,
        key: key.value,
        before: position ?? null,
        atMs: query.at ?? null,
        limit,
      }),
    );
    if (!listed.ok) return listed;
    const { periods, next: before, completeSinceMs } = listed.value;
    const { type } = key.value;
    const known = await types.forAnswer(storedTypes(periods.map((period) => ({ ...period, type }))));
    if (!known.ok) return known;
    const body = {
      periods: periods.map((period) => toApiPeriod(known.value, period)),
      complete_since: completeSinceMs === null ? null : timeOf(completeSinceMs),
      next_page_token: await next(before ?? undefined),
    };
    return ok({ status: 200, body });
  },

  async eraseHistory(call) {
    const { deployment } = call;
    const { bucket, reason, dry_run: dryRun } = call.body;
    const { objects, envelope, config } = deployment;
    const fault = reasonFault(reason, config.limits);
    if (fault !== undefined) return fault;
    const key = await keyOfBucket(deployment, bucket, "bucket");
    if (!key.ok) return key;
    const message = { ...envelope, key: key.value, operator: operatorOf(call, reason), dryRun };
    const body = { erased: 0, changes: 0, has_more: false, dry_run: dryRun };
    let current: { claimEpoch?: number | null } = {};
    // The logs of shards that had the name before a growth may have changes of it (G9).
    for (const shard of shardsEverOf(deployment, key.value)) {
      const target = { name: `shard ${shard}`, ...(dryRun ? {} : { advice: UNSURE }) };
      const done = await reach(readTimeoutMs(config.limits), target, () =>
        objects.shard(shard).erasePeriods({ ...message, ...current }),
      );
      if (!done.ok) return done;
      const { erased, changes, hasMore, claimEpoch } = done.value;
      body.erased += erased;
      body.changes += changes;
      body.has_more = hasMore;
      if (hasMore) break;
      current = { claimEpoch: current.claimEpoch ?? claimEpoch };
    }
    return ok({ status: 200, body });
  },
};

const UNSURE = "periods may have been erased, or may still be; you can repeat the call";

/**
 * Returns the shards that a bucket has or would have had with any number of shards up to this one. The first
 * one has it now. There are few: seven among 256 shards, on average.
 */
function shardsEverOf({ shards }: Deployment, { type, canonical }: BucketKey): number[] {
  const all = Array.from({ length: shards }, (_, fewer) => shardOf(type, canonical, shards - fewer));
  return [...new Set(all)];
}

const shardOfKey = ({ shards }: Deployment, { type, canonical }: BucketKey): number =>
  shardOf(type, canonical, shards);

export { historyHandlers as handlers, historyRoutes as routes };
