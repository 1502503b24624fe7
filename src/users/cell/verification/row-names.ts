import { DigestSum, digestWordsOf, type DigestedClaim } from "../../../common/digest.ts";
import { idFault } from "../../../common/ids.ts";
import { defaultLimits } from "../../../common/limits.ts";
import type { Types } from "../../../common/types/types.ts";
import type { Bucket, ClaimRecord, Subject } from "../../client/api-types.ts";
import type { Claimable, RowClaim } from "../claimable.ts";
import { canonicalOf, numberOf } from "../declared-types.ts";
import type { CellDatabase } from "../local.ts";
import type { VerifiedClaim } from "./ports.ts";

/** A claim that a row should have, with the canonical form of its name. */
export interface NamedClaim extends RowClaim {
  subject: Subject;
  canonical: string;
  /** Equal for all spellings of one name. */
  key: string;
}

/** A value that cannot be claimed. */
export interface Unnameable {
  claim: RowClaim;
  detail: string;
}

const keyOf = (type: Bucket["type"], canonical: string): string => `${type}\n${canonical}`;

export interface RowNames {
  /** Each name once: if two columns have the same name, the first one has the claim. */
  names: NamedClaim[];
  /** Names of further columns that are already in `names`. */
  duplicates: NamedClaim[];
  /**
   * Values that are not names, or have no subject. They may be older than the declaration of their column.
   */
  unnameable: Unnameable[];
  /**
   * Keys of all names of the row, also of those that it cannot claim: an existing claim on them is still its
   * own.
   */
  keys: ReadonlySet<string>;
}

export function namesOf(types: Types, claims: readonly VerifiedClaim[]): RowNames {
  const names: NamedClaim[] = [];
  const duplicates: NamedClaim[] = [];
  const unnameable: Unnameable[] = [];
  const keys = new Set<string>();
  for (const claim of claims) {
    const made = canonicalOf(types, claim.bucket);
    if (!made.ok) {
      unnameable.push({ claim, detail: made.detail });
      continue;
    }
    const { canonical } = made;
    const key = keyOf(claim.bucket.type, canonical);
    const { subject } = claim;
    const fault = claim.fault ?? subjectFault(subject) ?? scopeFault(claim.scope);
    if (subject === undefined || fault !== undefined) unnameable.push({ claim, detail: fault ?? "" });
    else (keys.has(key) ? duplicates : names).push({ ...claim, subject, canonical, key });
    keys.add(key);
  }
  return { names, duplicates, unnameable, keys };
}

function subjectFault(subject: Subject | undefined): string | undefined {
  if (subject === undefined) return "the row has no subject id";
  const fault = idFault(subject.id, defaultLimits);
  return fault === undefined ? undefined : `the id of the subject ${fault}`;
}

function scopeFault(scope: string | undefined): string | undefined {
  const fault = scope === undefined ? undefined : idFault(scope, defaultLimits);
  return fault === undefined ? undefined : `the scope ${fault}`;
}

/** Returns the facts of a claim that its digest covers, as the coordinator stores them. */
export function digestedOf(
  types: Types,
  { bucket, subject, source, scope, canonical }: NamedClaim,
): DigestedClaim {
  return {
    type: numberOf(types, "bucket", bucket.type),
    canonical,
    value: bucket.value,
    subject: { type: numberOf(types, "subject", subject.type), id: subject.id },
    source: { type: numberOf(types, "source", source.type), id: source.id },
    scope: scope ?? null,
  };
}

export const keyOfRecord = (types: Types, { bucket }: ClaimRecord): string => keyOfBucket(types, bucket);

/**
 * For a name that has a claim. The coordinator canonicalized it, so this fails only if the versions differ.
 */
export function keyOfBucket(types: Types, bucket: Bucket): string {
  const made = canonicalOf(types, bucket);
  if (!made.ok)
    throw new Error(
      `this SDK does not accept a name that the coordinator holds: ${made.detail} ` +
        "Update the SDK, or its copy of the declared types",
    );
  return keyOf(bucket.type, made.canonical);
}

/** Whether a record is exactly what the row needs. */
export const isSame = ({ bucket, subject, source, scope }: NamedClaim, record: ClaimRecord): boolean =>
  scope === record.scope &&
  bucket.value === record.bucket.value &&
  subject.type === record.subject.type &&
  subject.id === record.subject.id &&
  source.type === record.source.type &&
  source.id === record.source.id;

/** The rows that are in memory at a time. */
const PAGE_ROWS = 1_000;

/** The names that a cell's rows have in a scope: how many, and the digest of the set. */
export interface ScopeDigest {
  count: number;
  /** 32 hexadecimal digits, computed as the coordinator computes that of the claims. */
  hash: string;
}

/**
 * Reads all rows in one snapshot, page by page, and digests the names of those that have the scope. A value
 * that is not a name has no claim, so it is left out.
 */
export function digestScope<Tx>(
  database: CellDatabase<Tx>,
  tables: readonly Claimable[],
  types: Types,
  scope: string,
): Promise<ScopeDigest> {
  return database.verification.inSnapshot(async (page) => {
    const sum = new DigestSum();
    for (const claimable of tables)
      for (let after = ""; ;) {
        const rows = await page(claimable, { after, upTo: undefined, limit: PAGE_ROWS });
        for (const { row } of rows) {
          const { names } = namesOf(types, claimable.claimsOf(row));
          for (const name of names) if (name.scope === scope) sum.add(digestWordsOf(digestedOf(types, name)));
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < PAGE_ROWS) break;
        after = claimable.idOf(last.row);
      }
    return { count: sum.count, hash: sum.hash };
  });
}
