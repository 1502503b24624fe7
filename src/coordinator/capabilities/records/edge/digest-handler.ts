import type * as z from "zod";
import { fanOut } from "../../../kernel/fan-out.ts";
import { DigestSum } from "../../../../common/digest.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { DigestRecordsRequest, RangeDigest, SourceRange } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { compareBytes } from "../../../../common/source-order.ts";
import { invalid } from "../../../api/batch.ts";
import type { digestAnswer, digestQuery } from "../../../api/contract/schemas.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handler } from "../../../api/handler.ts";
import type { recordRoutes } from "./routes.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { timeOf } from "../../../api/answers.ts";
import { readDigests, sumOf } from "./digest-parts.ts";
import { countedRead } from "../../../api/handlers/ledger-access.ts";
import { boundsOf, MAX_CALLS, selectionOf } from "./range-handler.ts";

type GivenRange = z.output<typeof digestQuery>["ranges"][number];
type ApiDigest = z.input<typeof digestAnswer>["digests"][number];

/** Asks every shard about all ranges, and adds their digests up (R4). */
export const digestRecords: Handler<(typeof recordRoutes)["digestRecords"]> = async (call) => {
  const {
    deployment,
    params: { cell },
    body,
  } = call;
  const ranges = rangesOf(body.ranges, deployment.config.limits);
  if (!ranges.ok) return ranges;
  const selection = await selectionOf(
    deployment,
    { source_type: body.source_type, bucket_type: body.bucket_types },
    "bucket_types",
  );
  if (!selection.ok) return selection;
  // The time is read before the shards are asked, so their answers have everything that was done before it.
  const asOfMs = deployment.clock.now();
  const request = {
    ...deployment.envelope,
    cell,
    ...selection.value,
    ranges: ranges.value,
    cursor: null,
  };
  const answers = await countedRead(call, () => digestsOf(deployment, MAX_CALLS, request));
  if (!answers.ok) return answers;
  const sums = ranges.value.map((_, index) => sumOf(answers.value.flatMap((each) => each[index] ?? [])));
  const digests = sums.map(apiDigestOf);
  return ok({ status: 200, body: { as_of: timeOf(asOfMs), digests } });
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

/**
 * Asks all shards, with `calls` messages in all. If one fails, all of it fails, because a digest without a
 * shard would be wrong.
 */
async function digestsOf(
  deployment: Deployment,
  calls: number,
  request: DigestRecordsRequest,
): Promise<Result<RangeDigest[][]>> {
  const { shards } = deployment;
  const { limits } = deployment.config;
  const answers = await fanOut([...Array(shards).keys()], limits.fanOut, (shard) =>
    readDigests(request.ranges.length, Math.floor(calls / shards), (cursor) =>
      reach(readTimeoutMs(limits), { name: `shard ${shard}` }, () =>
        deployment.objects.shard(shard).digestRecords({ ...request, cursor }),
      ),
    ),
  );
  const digests: RangeDigest[][] = [];
  for (const answer of answers) {
    if (!answer.ok) return answer;
    digests.push(answer.value);
  }
  return ok(digests);
}

function apiDigestOf({ count, words, held, newestUpdatedAtMs }: RangeDigest): ApiDigest {
  const sum = new DigestSum();
  sum.add(words);
  return {
    count,
    hash: sum.hash,
    held,
    newest_updated_at: newestUpdatedAtMs === null ? null : timeOf(newestUpdatedAtMs),
  };
}
