import type * as z from "zod";
import { fanOut } from "../../core/fan-out.ts";
import { DigestSum } from "../../core/digest.ts";
import type { Limits } from "../../core/limits.ts";
import type { DigestRecordsRequest, RangeDigest, SourceRange } from "../../core/messages.ts";
import { ok, refused, type Result } from "../../core/refusal.ts";
import { bucketTypeNames } from "../../core/registry.ts";
import { compareBytes } from "../../core/source-order.ts";
import { invalid } from "../batch.ts";
import type { digestAnswer, digestQuery } from "../contract/schemas.ts";
import type { Deployment } from "../deployment.ts";
import type { Handler } from "../handler.ts";
import { reach, readTimeoutMs } from "../reach.ts";
import { timeOf } from "../answers.ts";
import { countedRead } from "./ledger-access.ts";
import { boundsOf } from "./record-range.ts";

type GivenRange = z.output<typeof digestQuery>["ranges"][number];
type ApiDigest = z.input<typeof digestAnswer>["digests"][number];

/** Asks every shard once, about all ranges, and adds their digests up (R4). */
export const digestRecords: Handler<"digestRecords"> = (call) => {
  const {
    deployment,
    params: { cell },
    body,
  } = call;
  const ranges = rangesOf(body.ranges, deployment.config.limits);
  if (!ranges.ok) return ranges;
  const types = body.bucket_types === undefined ? bucketTypeNames : [...new Set(body.bucket_types)];
  return ok(async () => {
    // The time is read before the shards are asked, so their answers have everything that was done before it.
    const asOfMs = deployment.clock.now();
    const request = {
      ...deployment.envelope,
      cell,
      sourceType: body.source_type,
      bucketTypes: types,
      ranges: ranges.value,
    };
    const answers = await countedRead(call, () => askShards(deployment, request));
    if (!answers.ok) return answers;
    const digests = ranges.value.map((_, index) => sumOf(answers.value.flatMap((each) => each[index] ?? [])));
    return ok({ status: 200, body: { as_of: timeOf(asOfMs), digests } });
  });
};

/** Checks the ranges. They must be in order without overlap, so that no claim is read twice. */
function rangesOf(given: readonly GivenRange[], limits: Limits): Result<SourceRange[]> {
  const ranges: SourceRange[] = [];
  for (const [index, range] of given.entries()) {
    const bounds = boundsOf(range, limits, `ranges[${index}].`);
    if (!bounds.ok) return bounds;
    const { after, upTo } = bounds.value;
    if (upTo !== null && compareBytes(after, upTo) >= 0)
      return invalid(
        `ranges[${index}].source_id_lte`,
        "must come after `source_id_gt` in the order of source ids",
      );
    const before = ranges.at(-1);
    if (before !== undefined && (before.upTo === null || compareBytes(before.upTo, after) > 0))
      return invalid(
        `ranges[${index}].source_id_gt`,
        "must not come before the end of the previous range, in the order of source ids",
      );
    ranges.push(bounds.value);
  }
  return ok(ranges);
}

/** Asks all shards. If one fails, all of it fails, because a digest without a shard would be wrong. */
async function askShards(
  deployment: Deployment,
  request: DigestRecordsRequest,
): Promise<Result<RangeDigest[][]>> {
  const { config, objects } = deployment;
  const shards = Array.from({ length: config.shards }, (_, shard) => shard);
  const answers = await fanOut(shards, config.limits.fanOut, (shard) =>
    reach(readTimeoutMs(deployment.config.limits), { name: `shard ${shard}` }, () =>
      objects.shard(shard).digestRecords(request),
    ),
  );
  const digests: RangeDigest[][] = [];
  for (const [shard, answer] of answers.entries()) {
    if (!answer.ok) return answer;
    if (answer.value.digests.length !== request.ranges.length)
      return refused("UNAVAILABLE", `shard ${shard} did not answer for every range`);
    digests.push(answer.value.digests);
  }
  return ok(digests);
}

function sumOf(parts: readonly RangeDigest[]): ApiDigest {
  const sum = new DigestSum();
  for (const { words, count } of parts) sum.add(words, count);
  const newest = parts.map(({ newestUpdatedAtMs }) => newestUpdatedAtMs).filter((ms) => ms !== null);
  return {
    count: sum.count,
    hash: sum.hash,
    held: parts.some(({ held }) => held),
    newest_updated_at: newest.length === 0 ? null : timeOf(Math.max(...newest)),
  };
}
