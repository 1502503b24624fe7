import type { DirectoryReconciliation, RestoreDirectory } from "../../../kernel/directory/messages.ts";
import type { ReconcileLedger } from "../messages.ts";
import { ok, refused, type Refusal, type Result } from "../../../kernel/refusal.ts";
import { DirectoryCopies, KEYS_PER_PAGE } from "../../../d1/directory-copies.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import { DIRECTORY, reach, readTimeoutMs } from "../../../isolate/reach.ts";
import { isPlacementConfirmed } from "../../../isolate/known-shards.ts";

const ADVICE = "some rows may have been restored; read the part before you repeat the call";

type Request = Pick<ReconcileLedger, "dryRun" | "declared" | "operator">;

/**
 * Reconciles the directory from the copies in D1 (H8): first all cells, because they bring the placement
 * back, then the keys, page by page. The last page accepts the loss. A call that ends early can be repeated.
 */
export async function reconcileDirectory(
  deployment: Deployment,
  { dryRun, declared, operator }: Request,
): Promise<Result<DirectoryReconciliation>> {
  const { objects, envelope, config } = deployment;
  const directory = { name: DIRECTORY, advice: ADVICE };
  const copies = new DirectoryCopies(deployment.env);
  const [cells, types, seen] = [await copies.cells(), await copies.types(), await copies.point()];
  const growth = await copies.growth();
  if (!growth.ok) return unreadable(growth);
  const operations = await copies.operations();
  if (!operations.ok) return unreadable(operations);
  if (!cells.ok) return unreadable(cells);
  if (!types.ok) return unreadable(types);
  if (!seen.ok) return unreadable(seen);
  const confirmed = await isPlacementConfirmed(deployment);
  if (!confirmed.ok) return confirmed;
  const send = (
    page: Pick<
      RestoreDirectory,
      "cells" | "keys" | "types" | "growth" | "operations" | "isLast" | "declared"
    >,
  ) =>
    reach(readTimeoutMs(config.limits), directory, () =>
      objects.directory().reconcile({
        ...envelope,
        ...(seen.value === undefined ? {} : { seen: seen.value }),
        dryRun,
        operator,
        isPlacementConfirmed: confirmed.value,
        ...page,
      }),
    );
  // In a dry run every page is examined as if the loss was declared. Otherwise the first page declares it.
  const first = declared === undefined ? {} : { declared };
  const always = dryRun ? first : {};
  let done = await send({
    cells: cells.value,
    keys: [],
    types: types.value ?? null,
    isLast: false,
    ...first,
  });
  if (done.ok && done.value.status.state !== "lost" && !dryRun) return done;
  for (let after: string | undefined = ""; done.ok && after !== undefined;) {
    const keys = await copies.keysAfter(after);
    if (!keys.ok) return unreadable(keys);
    const isLast = keys.value.length < KEYS_PER_PAGE;
    after = isLast ? undefined : keys.value.at(-1)?.keyId;
    if (isLast && !dryRun) {
      const restarted = await copies.restartKeys();
      if (!restarted.ok) return unreadable(restarted);
    }
    const page = { cells: [], keys: keys.value, types: null, isLast, ...always };
    const last = { growth: growth.value, operations: operations.value };
    done = addTo(done.value, await send(isLast ? { ...page, ...last } : page));
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
        types: [...before.types, ...page.value.types],
      })
    : page;

const unreadable = ({ refusal }: { refusal: Refusal }): Result<never> =>
  refused(
    "UNAVAILABLE",
    `the copies of the directory in D1 cannot be used now; repeat the call later: ${refusal.detail}`,
    { retryAfterMs: 10_000 },
  );
