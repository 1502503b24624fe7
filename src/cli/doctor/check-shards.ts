import type { Context } from "../framework/context.ts";
import { countOf } from "../../common/text/count-of.ts";
import { fail, ok, warn, type Check } from "./check.ts";

/** The alert LeaseholdShardHoldsFilling has the same bound. */
const FULL = 0.8;

const METRICS = "leasehold api GET /metrics";

/** Whether the shards may hold more names. A shard that does not answer has no samples. */
export async function checkShards(context: Context): Promise<Check> {
  const { status, text } = await context.send({ method: "GET", path: "/metrics" });
  if (status !== 200) return fail("holds", `the metrics can't be read: HTTP ${status}`, METRICS);
  const samples = new Map(
    [...text.matchAll(/^(leasehold_holds\w*)\{shard="(\d+)"\} (\d+)$/gm)].map(
      ([, family = "", shard = "", value]) => [`${family} ${shard}`, Number(value)],
    ),
  );
  const shards = [...samples.keys()].flatMap((key) => /^leasehold_holds (\d+)$/.exec(key)?.[1] ?? []);
  const [fullest] = shards
    .map((shard) => {
      const of = (family: string): number => samples.get(`${family} ${shard}`) ?? 0;
      const facts = {
        held: of("leasehold_holds"),
        of_one_cell: of("leasehold_holds_of_one_cell"),
        limit: of("leasehold_holds_limit"),
      };
      // One cell may hold half.
      return { shard, facts, share: Math.max(facts.held, 2 * facts.of_one_cell) / facts.limit };
    })
    .toSorted((a, b) => b.share - a.share);
  if (fullest === undefined) return warn("holds", "no shard says how many names it holds", METRICS);
  const { shard, facts, share } = fullest;
  const detail =
    `shard ${shard} holds ${countOf(facts.held, "name")}, ${facts.of_one_cell} for one cell; ` +
    `the limit is ${facts.limit}, and half of it for a cell`;
  return share > FULL ? warn("holds", detail, "leasehold leases ls", facts) : ok("holds", detail, facts);
}
