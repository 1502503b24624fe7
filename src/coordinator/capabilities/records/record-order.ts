import { compareBytes, sourceOrder } from "../../../common/source-order.ts";
import type { ClaimRecord } from "../../kernel/messages.ts";
import type { RecordPosition } from "./messages.ts";

/** Compares the positions of two records in a list. This is the order of the index `claim_by_source`. */
export const comparePositions = (a: RecordPosition, b: RecordPosition): number =>
  compareBytes(a[0], b[0]) || a[1] - b[1] || compareBytes(a[2], b[2]);

export const positionOfRecord = ({ source, type, canonical }: ClaimRecord): RecordPosition => [
  sourceOrder(source.id),
  type,
  canonical,
];

/** Compares by source order, then bucket type, then canonical value. */
export const bySource = (a: ClaimRecord, b: ClaimRecord): number =>
  comparePositions(positionOfRecord(a), positionOfRecord(b));
