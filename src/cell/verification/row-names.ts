import type { Bucket, Record as ClaimRecord, Subject } from "../../client/api-types.ts";
import { canonicalize } from "../../core/canonical/canonicalize.ts";
import { idFault } from "../../core/ids.ts";
import { defaultLimits } from "../../core/limits.ts";
import type { DigestedClaim } from "../../core/digest.ts";
import type { RowClaim } from "../claimable.ts";
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

export function canonicalOf({
  type,
  value,
}: Bucket): { ok: true; canonical: string } | { ok: false; detail: string } {
  const made = canonicalize(type, value, defaultLimits.valueBytes);
  return made.ok ? made : { ok: false, detail: made.detail };
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

export function namesOf(claims: readonly VerifiedClaim[]): RowNames {
  const names: NamedClaim[] = [];
  const duplicates: NamedClaim[] = [];
  const unnameable: Unnameable[] = [];
  const keys = new Set<string>();
  for (const claim of claims) {
    const made = canonicalOf(claim.bucket);
    if (!made.ok) {
      unnameable.push({ claim, detail: made.detail });
      continue;
    }
    const { canonical } = made;
    const key = keyOf(claim.bucket.type, canonical);
    const { subject } = claim;
    const fault = claim.fault ?? subjectFault(subject);
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

export function digestedOf({ bucket, subject, source, canonical }: NamedClaim): DigestedClaim {
  return { type: bucket.type, canonical, value: bucket.value, subject, source };
}

export const keyOfRecord = ({ bucket }: ClaimRecord): string => keyOfBucket(bucket);

/**
 * For a name that has a claim. The coordinator canonicalized it, so this fails only if the versions differ.
 */
export function keyOfBucket(bucket: Bucket): string {
  const made = canonicalOf(bucket);
  if (!made.ok)
    throw new Error(
      `this SDK does not accept a name that the coordinator holds: ${made.detail}. Update the SDK`,
    );
  return keyOf(bucket.type, made.canonical);
}

/** Whether a record is exactly what the row needs. */
export const isSame = ({ bucket, subject, source }: NamedClaim, record: ClaimRecord): boolean =>
  bucket.value === record.bucket.value &&
  subject.type === record.subject.type &&
  subject.id === record.subject.id &&
  source.type === record.source.type &&
  source.id === record.source.id;
