import { DigestSum, digestWordsOf } from "../../../src/common/digest.ts";
import type { VerificationSlot } from "../../../src/coordinator/capabilities/slots/directory.ts";
import type { DigestWords, Op } from "../../../src/coordinator/kernel/messages.ts";
import type {
  DigestRecordsAnswer,
  SourceRange,
} from "../../../src/coordinator/capabilities/records/messages.ts";
import { readDigests } from "../../../src/coordinator/capabilities/records/edge/digest-parts.ts";
import { ok, refused } from "../../../src/coordinator/kernel/refusal.ts";
import { sourceOrder } from "../../../src/common/source-order.ts";
import { shipped } from "../../support/types.ts";
import { isRefused } from "./api.ts";
import type { Cell } from "./cell.ts";
import { digestedOf } from "./judge/digest-watch.ts";
import type { Simulation } from "./simulation.ts";

// Calls whose answers are certain when no work is left. They come last, so they do not change the run before
// them.

/**
 * Compares the digests of every cell and shard with its claims, for the whole range and for two parts. Only a
 * hold that was not released yet may be reported (R4).
 */
export async function checkDigests(simulation: Simulation): Promise<void> {
  for (const { id } of simulation.cells) {
    for (const shard of simulation.coordinator.shards.keys()) {
      for (const { kind, number } of shipped.entries)
        if (kind === "source") await checkDigest(simulation, id, shard, number);
    }
  }
}

/** More messages than the claims of a run take. */
const FINAL_DIGEST_CALLS = 500;

async function checkDigest(
  { judge, operator }: Simulation,
  cell: string,
  shard: number,
  sourceType: number,
): Promise<void> {
  const middle = sourceOrder("10");
  const read = (ranges: readonly SourceRange[]) => {
    const query = { cell, sourceType, bucketTypes: null, ranges };
    return readDigests(ranges.length, FINAL_DIGEST_CALLS, async (cursor) => {
      const answer = await operator.toShard<DigestRecordsAnswer>(shard, "digestRecords", {
        ...query,
        cursor,
      });
      return answer.kind === "ok" ? ok(answer.value) : refused("UNAVAILABLE", "the shard did not answer");
    });
  };
  const holds = [...(judge.images[shard]?.holds.values() ?? [])];
  const mayBeHeld = holds.some((hold) => hold.cell === cell);
  // The ranges of one question don't overlap.
  const whole = await read([{ after: "", upTo: null }]);
  const parts = await read([
    { after: "", upTo: middle },
    { after: middle, upTo: null },
  ]);
  if (!whole.ok || !parts.ok) return;
  const rows = [...(judge.images[shard]?.claims.values() ?? [])].filter(
    (row) => row.cell === cell && row.source_type === sourceType,
  );
  const expected = textOf(rows.map((row) => ({ words: digestWordsOf(digestedOf(row)), count: 1 })));
  for (const [what, digests] of [
    ["the whole", whole.value],
    ["two parts", parts.value],
  ] as const) {
    const answered = textOf(digests);
    judge.check(
      "I12",
      answered === expected,
      () =>
        `${what} of cell ${cell} on shard ${shard} has the digest ` +
        `${answered}, but its claims have ${expected}`,
    );
    const isHeld = digests.some(({ held }) => held);
    judge.check(
      "I12",
      !isHeld || mayBeHeld,
      () => `a digest of cell ${cell} on shard ${shard} reports a hold, but there is none`,
    );
  }
  judge.see("R4");
}

function textOf(parts: readonly { words: DigestWords; count: number }[]): string {
  const sum = new DigestSum();
  for (const { words, count } of parts) sum.add(words, count);
  return `${sum.count} ${sum.hash}`;
}

/**
 * A destroy with another epoch is refused. One with the claim's epoch is granted, and then rolled back. A
 * replace with an epoch takes no name that nobody has (B10, B12).
 */
export async function checkEpochs(simulation: Simulation, cell: Cell): Promise<void> {
  const { judge } = simulation;
  const [row] = cell.local.rows.values();
  const claim = judge
    .claims()
    .find(({ cell: owner, canonical }) => owner === cell.id && canonical === row?.canonical);
  if (row === undefined || claim === undefined) return;
  const [op] = cell.opsOf({ creates: [], destroys: [row], replaces: [] });
  if (op === undefined) return;
  const begin = (ending: string, ops: Op[], allowMissing = false) =>
    cell.api.begin(cell.id, cell.caller, {
      lease: `00000000-0000-4000-8000-0000000${cell.id}${ending}`,
      ops,
      allowMissing,
    });
  const outdated = await begin("8000", [{ ...op, epoch: claim.epoch + 1 }]);
  if (outdated.kind === "unknown") return;
  const isMismatch = outdated.kind === "refused" && outdated.refusal.conflicts?.[0]?.kind === "mismatch";
  judge.check(
    "I3",
    isMismatch,
    () =>
      `cell ${cell.id} destroyed ${row.canonical} with another ` +
      `epoch and was answered ${JSON.stringify(outdated)}`,
  );
  const current = await begin("8001", [{ ...op, epoch: claim.epoch }]);
  if (current.kind === "unknown") return;
  judge.check(
    "I3",
    current.kind === "ok",
    () => `cell ${cell.id} gave the epoch of ${row.canonical} and was answered ${JSON.stringify(current)}`,
  );
  await cell.api.decide(cell.id, cell.caller, `00000000-0000-4000-8000-0000000${cell.id}8001`, "ROLLED_BACK");
  judge.see("B10");
  const free = { ...row, canonical: "nobody-has-it", value: "nobody-has-it" };
  const [replace] = cell.opsOf({ creates: [], destroys: [], replaces: [free] });
  if (replace === undefined) return;
  const taken = await begin("8002", [{ ...replace, epoch: claim.epoch }], true);
  judge.check(
    "I3",
    taken.kind !== "ok",
    () =>
      `cell ${cell.id} named an epoch of a name that nobody has, and was answered ${JSON.stringify(taken)}`,
  );
}

/** Only as many cells as the limit allows get a slot, and a second run of a cell gets none (A3). */
export async function checkSlots({ judge, operator, coordinator, cells }: Simulation): Promise<void> {
  const take = (cell: string, uuid: string) =>
    operator.toDirectory<VerificationSlot>("takeSlot", { cell, uuid });
  for (const [index, { id }] of cells.entries()) {
    const answer = await take(id, `run ${id}`);
    if (answer.kind === "unknown") return;
    const isRight =
      index < coordinator.limits.verificationSlots
        ? answer.kind === "ok"
        : isRefused(answer, "NO_VERIFICATION_SLOT");
    judge.check(
      "I16",
      isRight,
      () => `cell ${id} asked for slot number ${index + 1} and was answered ${JSON.stringify(answer)}`,
    );
  }
  const second = await take(cells[0]?.id ?? "1", "another run");
  judge.check(
    "I16",
    isRefused(second, "NO_VERIFICATION_SLOT"),
    () => `a second run of a cell got a slot: ${JSON.stringify(second)}`,
  );
  judge.see("A3");
}
