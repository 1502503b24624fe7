import type { DirectoryReconciliation, RestoreDirectory } from "../../core/directory/messages.ts";
import type { ReconcileLedger } from "../../core/messages.ts";
import { ok, refused, type Refusal, type Result } from "../../core/refusal.ts";
import { DirectoryCopies, KEYS_PER_PAGE } from "../../projections/directory-copies.ts";
import type { Deployment } from "../deployment.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../reach.ts";

const ADVICE = "some rows may have been restored; read the part, or repeat the call";

type Request = Pick<ReconcileLedger, "dryRun" | "isDeclared" | "reason">;

/**
 * Reconciles the directory from the copies in D1 (H8): first all cells, because they bring the placement
 * back, then the keys, page by page. The last page accepts the loss. A call that ends early can be repeated.
 */
export async function reconcileDirectory(
  deployment: Deployment,
  request: Request,
): Promise<Result<DirectoryReconciliation>> {
  const { objects, envelope, config } = deployment;
  const copies = new DirectoryCopies(deployment.env);
  const cells = await copies.cells();
  if (!cells.ok) return unreadable(cells);
  const misplaced = await placementRefusal(deployment);
  if (misplaced !== undefined) return { ok: false, refusal: misplaced };
  if (!request.dryRun) {
    const restarted = await copies.restartKeys();
    if (!restarted.ok) return unreadable(restarted);
  }
  const send = (page: Pick<RestoreDirectory, "cells" | "keys" | "isLast">) =>
    reach(readTimeoutMs(config.limits), { name: DIRECTORY, advice: ADVICE }, () =>
      objects.directory().reconcile({ ...envelope, ...request, ...page }),
    );
  let done = await send({ cells: cells.value, keys: [], isLast: false });
  for (let after: string | undefined = ""; done.ok && after !== undefined;) {
    const keys = await copies.keysAfter(after);
    if (!keys.ok) return unreadable(keys);
    const isLast = keys.value.length < KEYS_PER_PAGE;
    after = isLast ? undefined : keys.value.at(-1)?.keyId;
    done = addTo(done.value, await send({ cells: [], keys: keys.value, isLast }));
  }
  deployment.directory.expire();
  return done;
}

const addTo = (
  before: DirectoryReconciliation,
  page: Result<DirectoryReconciliation>,
): Result<DirectoryReconciliation> =>
  page.ok
    ? ok({
        status: page.value.status,
        cells: [...before.cells, ...page.value.cells],
        keys: before.keys + page.value.keys,
        revocations: before.revocations + page.value.revocations,
      })
    : page;

const unreadable = ({ refusal }: { refusal: Refusal }): Result<never> =>
  refused("UNAVAILABLE", `the directory is restored from its copies in D1: ${refusal.detail}`, {
    retryAfterMs: 10_000,
  });

/**
 * A directory that has lost its placement would get that of this Worker with its cells. The shards know the
 * right one (P1). A shard that has never confirmed one cannot say anything.
 */
async function placementRefusal({ objects, envelope, config }: Deployment): Promise<Refusal | undefined> {
  const asked = await reach(readTimeoutMs(config.limits), { name: "shard 0" }, () =>
    objects.shard(0).part(envelope),
  );
  if (asked.ok || asked.refusal.reason === "HISTORY_LOST" || asked.refusal.reason === "NO_CELLS")
    return undefined;
  return asked.refusal;
}
