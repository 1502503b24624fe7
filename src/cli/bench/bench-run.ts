import { randomBytes } from "node:crypto";
import type { Batch, Bucket } from "../../users/client/index.ts";

/** The types of the names of a run. */
export interface BenchTypes {
  type: string;
  subject: string;
  source: string;
}

type Create = NonNullable<Batch["creates"]>[number];

const PREFIX = "leasehold-bench-";

const RUN = /^[\da-f]{8}$/;

export const isRunId = (text: string): boolean => RUN.test(text);

/** The id of a run, which is in all of its names and rows. */
export const newRunId = (): string => randomBytes(4).toString("hex");

/** What the names and the source ids of a run begin with. */
export const prefixOf = (run: string): string => `${PREFIX}${run}-`;

export function createOf(run: string, number: number, { type, subject, source }: BenchTypes): Create {
  const id = `${prefixOf(run)}${number}`;
  return {
    bucket: { type, value: id } as Bucket,
    subject: { type: subject, id } as Create["subject"],
    source: { type: source, id } as Create["source"],
  };
}
