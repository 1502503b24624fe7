import type { Bucket, Source, Subject } from "../../users/client/index.ts";
import type { Change, ClaimRecord } from "../../users/client/api-types.ts";
import { compareBytes, sourceOrder } from "../../common/source-order.ts";
import { damaged } from "./format.ts";

/** A claim as the backup has it. */
export interface Claim {
  cell: string;
  uuid: string;
  epoch: number;
  bucket: Bucket;
  subject: Subject;
  source: Source;
  scope?: string;
}

interface Changed {
  epoch: number;
  /** Undefined: it was released, or its details were erased. */
  claim: Claim | undefined;
  isReleased: boolean;
}

/** The claim of a record. */
export const claimOf = (record: ClaimRecord): Claim => {
  const { cell_id: cell, uuid, epoch, bucket, subject, source, scope } = record;
  return { cell, uuid, epoch, bucket, subject, source, ...(scope === undefined ? {} : { scope }) };
};

export const sectionOf = (cell: string, sourceType: string): string => `${cell} ${sourceType}`;

export const orderSources = (a: string, b: string): number => compareBytes(sourceOrder(a), sourceOrder(b));

/**
 * The claims that have changed since a checkpoint. Together with records that were exported after it, they
 * are all claims of a later checkpoint (F6). It has one entry for each claim that has changed.
 */
export class ChangedClaims {
  readonly #byUuid = new Map<string, Changed>();

  /** Changes of a shard come in order. A change that comes again does no harm. */
  apply({ event, epoch, cell_id: cell, claim }: Change): void {
    if (claim === undefined) return;
    const known = this.#byUuid.get(claim.uuid);
    if (known !== undefined && known.epoch > epoch) return;
    this.#byUuid.set(claim.uuid, {
      epoch,
      isReleased: event === "released",
      claim: event === "released" ? undefined : changedClaimOf(cell, epoch, claim),
    });
  }

  /** Whether the changes say what has become of the claim of a record. */
  has({ uuid, epoch }: ClaimRecord): boolean {
    const changed = this.#byUuid.get(uuid);
    if (changed === undefined) return false;
    // Every change after the record is among the changes too, because they are read until after the export.
    if (changed.epoch < epoch) throw damaged(`a change of the claim ${uuid} is missing`);
    return true;
  }

  /** The claims that exist after all changes, by section, in the order of their sources. */
  sections(): Map<string, Claim[]> {
    const sections = new Map<string, Claim[]>();
    for (const [uuid, { claim, isReleased }] of this.#byUuid) {
      if (isReleased) continue;
      // Only past details are erased (K5), and a later change follows them.
      if (claim === undefined) throw damaged(`the claim ${uuid} has no details`);
      const section = sectionOf(claim.cell, claim.source.type);
      const claims = sections.get(section);
      if (claims === undefined) sections.set(section, [claim]);
      else claims.push(claim);
    }
    for (const claims of sections.values()) claims.sort((a, b) => orderSources(a.source.id, b.source.id));
    return sections;
  }
}

function changedClaimOf(
  cell: string,
  epoch: number,
  { uuid, bucket, subject, source, scope }: NonNullable<Change["claim"]>,
): Claim | undefined {
  if (bucket === undefined || subject === undefined || source === undefined) return undefined;
  return { cell, uuid, epoch, bucket, subject, source, ...(scope === undefined ? {} : { scope }) };
}
