/** What tests of verification find, in short. */
import type { VerificationItem, VerificationReport } from "../../verification/report.ts";

const USERS = "RAILS_TABLE_USERS";
const subject = (id: number | string) => ({ type: "USER" as const, id: String(id) });
const source = (id: number | string) => ({ type: USERS, id: String(id) }) as const;
export const username = (value: string) => ({ type: "USERNAMES" as const, value });

export const kinds = ({ counts: { missing, different, extra } }: VerificationReport): number[] => [
  missing,
  different,
  extra,
];
export const changes = ({ counts: { created, replaced, destroyed } }: VerificationReport): number[] => [
  created,
  replaced,
  destroyed,
];
export const brief = ({ action, bucket, reason, outcome, skipReason }: VerificationItem): string =>
  `${action} ${bucket.value} (${reason}) ${skipReason === undefined ? outcome : `skipped: ${skipReason}`}`;

export const takes = (value: string, id: number | string) => ({
  bucket: username(value),
  subject: subject(id),
  source: source(id),
});
