import type { Instances } from "../../kernel/instances.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { OPERATORS, type ReadQueue } from "../../kernel/shard/read-queue.ts";
import type { ShardLog } from "../../kernel/shard/shard-log.ts";
import { changesPage } from "./changes-page.ts";
import type { ChangesPage, ChangesRequest } from "./messages.ts";

interface Needs {
  readonly log: ShardLog;
  readonly instances: Pick<Instances, "incarnationAt" | "lastPositionAfter">;
  readonly reads: Pick<ReadQueue, "run">;
}

/** Returns what happened after a position, for the change feed (F4). */
export async function listChanges(
  part: Needs,
  { after, ...message }: ChangesRequest,
): Promise<Result<ChangesPage>> {
  const { log, instances, reads } = part;
  const newest = log.position;
  // A consumer's word proves no loss, like a router's (Q3).
  if (after !== null && after > newest) {
    return refused(
      "UNAVAILABLE",
      `the shard is at position ${newest}, and the changes should begin after position ${after}`,
      { retryAfterMs: 1_000 },
    );
  }
  return reads
    .run<Result<ChangesPage>>(message.cell ?? OPERATORS, () => {
      const start = after ?? newest;
      const read = changesPage(log, start, message, instances.lastPositionAfter(start));
      return read === undefined
        ? { value: changesPruned(after), rows: 0 }
        : { value: ok(withPoints(instances, read.page)), rows: read.visited };
    })
    .then((done) => (done.ok ? done.value : done));
}

function withPoints(instances: Needs["instances"], page: Omit<ChangesPage, "incarnations">): ChangesPage {
  const { after, through } = page;
  const incarnations: ChangesPage["incarnations"] = [
    instances.incarnationAt(after),
    instances.incarnationAt(through),
  ];
  return { ...page, incarnations };
}

const changesPruned = (after: number | null): Result<never> =>
  refused(
    "FAILED_PRECONDITION",
    `the shard no longer has all changes after position ${after}; read the newest positions, then export ` +
      "the records, and continue from these positions",
    { reason: "CHANGES_PRUNED" },
  );
