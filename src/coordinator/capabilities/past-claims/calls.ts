import type { BucketKey } from "../../kernel/messages.ts";
import { keyHash } from "../../kernel/key-hash.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import type { ShardPart } from "../../kernel/shard/part.ts";
import { OPERATORS } from "../../kernel/shard/read-queue.ts";
import type { ErasedPeriods, ErasePeriods, ListPeriods, PeriodPage } from "./messages.ts";
import { readPeriods } from "./periods.ts";
import type { PastClaims } from "./shard.ts";

declare module "../../kernel/audit-trail.ts" {
  interface AuditedActions {
    erase_history: true;
  }
}

/** Returns the owners of a name, now and before, the latest first (K2). */
export async function listPeriods(
  part: ShardPart,
  pastClaims: PastClaims,
  message: ListPeriods,
): Promise<Result<PeriodPage>> {
  const { store, limits, standing, ports } = part;
  const residence = part.residence.current;
  if (!residence.serves(message.key)) return { ok: false, refusal: residence.notHere() };
  // A hold whose lease is decided is cleared first, so the claim is what the lookup shows (R2).
  if (message.before === null) {
    const [current] = await part.reader.lookup([message.key], message.traces);
    if (current === undefined || current.found.kind === "unknown") return unknownOwner;
  }
  return part.reads
    .run<Result<PeriodPage>>(OPERATORS, () => {
      // The claim may have another owner already, but not be rewritten yet (Y4).
      if (message.before === null && isMoving(part, message.key)) return { value: unknownOwner, rows: 1 };
      const page = readPeriods(store, pastClaims, limits.scanRows, message);
      // What was lost and is not verified yet may be missing (H6, K4).
      const isReconciling = standing.current.incomplete !== undefined;
      const completeSinceMs = isReconciling ? ports.clock.now() : pastClaims.completeSinceMs;
      return { value: ok({ ...page, completeSinceMs }), rows: page.rows };
    })
    .then((done) => (done.ok ? done.value : done));
}

function isMoving({ store, wide }: ShardPart, key: BucketKey): boolean {
  const claim = store.claim(key);
  const read = claim && wide.current.shown(claim, new Map())?.read;
  return read?.kind === "record" && read.record.cell !== claim?.cell;
}

/** Erases the past claims of a name (K5). A dry run returns what would be erased. */
export async function erasePeriods(
  part: ShardPart,
  pastClaims: PastClaims,
  message: ErasePeriods,
): Promise<Result<ErasedPeriods>> {
  const { key, operator, dryRun } = message;
  const most = part.limits.scanRows;
  const epochHere = (): number | null => part.store.claim(key)?.epoch ?? null;
  const eraseFromLog = (): number => {
    const current = epochHere() ?? message.claimEpoch ?? undefined;
    return part.log.eraseName(key, current, { dryRun });
  };
  if (dryRun) {
    const found = pastClaims.count(key, most + 1);
    const changes = found > most ? 0 : eraseFromLog();
    return ok({
      erased: Math.min(found, most),
      changes,
      hasMore: found > most,
      claimEpoch: epochHere(),
    });
  }
  return part.commits.submit(
    "erase_past_claims",
    (): Result<ErasedPeriods> => {
      const full = part.audit.current.refusal;
      if (full !== undefined) return { ok: false, refusal: full };
      const result = pastClaims.erase(key, most);
      // The log may have periods that are no longer kept as past claims.
      const changes = result.hasMore ? 0 : eraseFromLog();
      if (result.erased > 0 || changes > 0) {
        part.audit.current.append(operator, {
          action: "erase_history",
          cell: null,
          target: keyHash(key),
          before: { periods: result.erased },
          after: { periods: 0 },
        });
      }
      return ok({ ...result, changes, claimEpoch: epochHere() });
    },
    { weight: most, owner: OPERATORS },
  );
}

const unknownOwner: Result<never> = refused(
  "UNAVAILABLE",
  "the ledger that knows whether the name is taken cannot be reached",
  { retryAfterMs: 1_000 },
);
