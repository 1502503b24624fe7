import { digestWordsOf } from "../digest.ts";
import type { DigestWords } from "../messages.ts";
import { bucketTypeByNumber, sourceTypeByNumber, subjectTypeByNumber } from "../registry.ts";
import type { HoldRow } from "./rows.ts";

/** A claim without a digest is never taken as equal to anything (R4). */
const NO_WORDS = [null, null, null, null] as const;

/**
 * Returns the digest words of the claim that a create or replace hold becomes. Returns nulls if the hold has
 * a type that only a newer version knows, because a commit is never refused for that (C6).
 */
export function digestWordsOfHold(hold: HoldRow): DigestWords | typeof NO_WORDS {
  const { canonical, value, subject_id: subjectId, source_id: sourceId } = hold;
  const type = bucketTypeByNumber(hold.bucket_type);
  const subjectType = hold.subject_type === null ? undefined : subjectTypeByNumber(hold.subject_type);
  const sourceType = hold.source_type === null ? undefined : sourceTypeByNumber(hold.source_type);
  if (type === undefined || subjectType === undefined || sourceType === undefined) return NO_WORDS;
  if (value === null || subjectId === null || sourceId === null) return NO_WORDS;
  return digestWordsOf({
    type,
    canonical,
    value,
    subject: { type: subjectType, id: subjectId },
    source: { type: sourceType, id: sourceId },
  });
}
