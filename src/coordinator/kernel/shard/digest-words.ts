import { digestWordsOf } from "../../../common/digest.ts";
import type { DigestWords } from "../messages.ts";
import { notNull } from "./record.ts";
import type { HoldRow } from "./rows.ts";

/** Returns the digest words of the claim that a create or replace hold becomes. */
export const digestWordsOfHold = (hold: HoldRow): DigestWords =>
  digestWordsOf({
    type: hold.bucket_type,
    canonical: hold.canonical,
    value: notNull(hold.value),
    subject: { type: notNull(hold.subject_type), id: notNull(hold.subject_id) },
    source: { type: notNull(hold.source_type), id: notNull(hold.source_id) },
    scope: hold.scope,
  });
