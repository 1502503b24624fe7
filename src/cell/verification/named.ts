import type { Bucket, Record as ClaimRecord, Subject } from "../../client/api-types.ts";
import { canonicalize } from "../../core/canonical/canonicalize.ts";
import { idFault } from "../../core/ids.ts";
import { defaultLimits } from "../../core/limits.ts";
import type { DigestedClaim } from "../../core/digest.ts";
import type { RowClaim } from "../claimable.ts";
import type { VerifiedClaim } from "./ports.ts";

/** A claim that a row stands for, with what makes its name the same as another spelling of it. */
export interface NamedClaim extends RowClaim {
  subject: Subject;
  canonical: string;
  /** Equal for all spellings of one name. */
  key: string;
}

/** What a value has against being a name. */
export interface Unnameable {
  claim: RowClaim;
  why: string;
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
  /** Each once: of two columns with one name, the first has the claim. */
  names: NamedClaim[];
  /** The other columns. */
  duplicates: NamedClaim[];
  /** A value from before its column was claimed may be anything, and the row may not tell whom it is about. */
  unnameable: Unnameable[];
  /** Of everything that is a name, also where no claim can be made of it: a claim that the row has is its own. */
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
      unnameable.push({ claim, why: made.detail });
      continue;
    }
    const { canonical } = made;
    const key = keyOf(claim.bucket.type, canonical);
    const { subject } = claim;
    const fault = claim.fault ?? subjectFault(subject);
    if (subject === undefined || fault !== undefined) unnameable.push({ claim, why: fault ?? "" });
    else (keys.has(key) ? duplicates : names).push({ ...claim, subject, canonical, key });
    keys.add(key);
  }
  return { names, duplicates, unnameable, keys };
}

function subjectFault(subject: Subject | undefined): string | undefined {
  if (subject === undefined) return "the row does not tell whom the name is about";
  const fault = idFault(subject.id, defaultLimits);
  return fault === undefined ? undefined : `the id of the subject ${fault}`;
}

export function digestedOf({ bucket, subject, source, canonical }: NamedClaim): DigestedClaim {
  return { type: bucket.type, canonical, value: bucket.value, subject, source };
}

export const keyOfRecord = ({ bucket }: ClaimRecord): string => keyOfBucket(bucket);

/** Of a name that has a claim: the coordinator made it canonical itself, so this can only fail when the two are of different versions. */
export function keyOfBucket(bucket: Bucket): string {
  const made = canonicalOf(bucket);
  if (!made.ok)
    throw new Error(
      `the coordinator has a name that is none here: ${made.detail}; is the SDK older than the coordinator?`,
    );
  return keyOf(bucket.type, made.canonical);
}

/** Whether a record says just what the row does. */
export const isSame = ({ bucket, subject, source }: NamedClaim, record: ClaimRecord): boolean =>
  bucket.value === record.bucket.value &&
  subject.type === record.subject.type &&
  subject.id === record.subject.id &&
  source.type === record.source.type &&
  source.id === record.source.id;
