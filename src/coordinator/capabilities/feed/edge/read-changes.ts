import type { ChangesPage, ChangesRequest } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Positions } from "../../../../users/router/positions.ts";

/** What is asked of one shard. */
interface AskedShard extends Pick<ChangesRequest, "after" | "limit"> {
  shard: number;
}

/** Asks shards, and returns their answers in the same order. */
export type ReadShards = (asked: readonly AskedShard[]) => Promise<readonly Result<ChangesPage>[]>;

interface ReadChanges {
  pages: { shard: number; page: ChangesPage }[];
  positions: Positions;
  hasMore: boolean;
  /** The shards that could not be read. */
  unavailable: number[];
}

/**
 * Reads the next changes of all shards. Without `after`, it reads their newest positions.
 *
 * @param shards how many shards the placement has with which `read` asks
 */
export async function readChanges(
  read: ReadShards,
  { shards: count, limit, fanOut }: { shards: number; limit: number; fanOut: number },
  after: Positions | undefined,
): Promise<Result<ReadChanges>> {
  const ask = (some: readonly number[], share: number): Promise<readonly Result<ChangesPage>[]> =>
    read(
      some.map((shard) => ({
        shard,
        after: after === undefined ? null : (after.get(shard) ?? 0),
        limit: share,
      })),
    );
  const all = [...Array(count).keys()];
  const isKnown = (shard: number): boolean => after?.has(shard) !== false;
  const shards = all.filter(isKnown);
  const answers = [...(await ask(shards, Math.ceil(limit / shards.length)))];
  // What happened to a name before it moved to a new shard comes before what happens there (F6). It may have
  // moved more than once, and each time to a shard with a higher number (G9).
  const isAtEnd = (): boolean => answers.every((answer) => answer.ok && !answer.value.hasMore);
  const waiting = all.filter((shard) => !isKnown(shard));
  // Each of them takes a round trip, so a page reads few.
  const most = shards.length + fanOut;
  const isFull = (): boolean => countOf(answers) >= limit || shards.length >= most;
  while (waiting.length > 0 && isAtEnd() && !isFull()) {
    const next = waiting.splice(0, 1);
    answers.push(...(await ask(next, limit - countOf(answers))));
    shards.push(...next);
  }
  const refusal = refusalOf(shards, answers, after);
  if (refusal !== undefined) return refusal;
  const pages = shards.flatMap((shard, index) => {
    const answer = answers[index];
    return answer?.ok === true ? [{ shard, page: answer.value }] : [];
  });
  const positions = new Map(after);
  for (const { shard, page } of pages) positions.set(shard, page.through);
  return ok({
    pages,
    positions,
    hasMore: pages.some(({ page }) => page.hasMore) || (waiting.length > 0 && isAtEnd()),
    unavailable: shards.filter((_, index) => answers[index]?.ok === false),
  });
}

const countOf = (answers: readonly Result<ChangesPage>[]): number =>
  answers.reduce((sum, answer) => sum + (answer.ok ? answer.value.changes.length : 0), 0);

/**
 * The refusal of a whole page. A shard that cannot be read keeps its position, so the others are told. But a
 * shard whose changes are no longer there needs an export, and the newest positions are only right together.
 */
function refusalOf(
  shards: readonly number[],
  answers: readonly Result<ChangesPage>[],
  after: Positions | undefined,
): Result<never> | undefined {
  const refusals = answers.flatMap((answer, index) => (answer.ok ? [] : [{ shard: shards[index], answer }]));
  const outdated = refusals.find(({ answer }) => answer.refusal.reason === "PLACEMENT_MISMATCH");
  if (outdated !== undefined) return outdated.answer;
  const pruned = refusals.find(({ answer }) => answer.refusal.reason === "CHANGES_PRUNED");
  if (pruned !== undefined) {
    const { refusal } = pruned.answer;
    return { ok: false, refusal: { ...refusal, detail: `shard ${pruned.shard}: ${refusal.detail}` } };
  }
  const isWhole = after === undefined || refusals.length === answers.length;
  return isWhole ? refusals[0]?.answer : undefined;
}
