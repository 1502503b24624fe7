import type { PartState } from "../../../src/coordinator/capabilities/loss/messages.ts";
import { read } from "./made-leases.ts";
import type { Part } from "./part.ts";

/** The newest durable incarnation of a part. */
export const incarnationOf = (part: Part<object>): number =>
  Math.max(0, ...read<{ incarnation: number }>(part, "incarnation", "true").map((row) => row.incarnation));

/** Reads from the disk whether a part is lost. */
export function stateOf(part: Part<object>): PartState {
  const [meta] = read<{ value: string }>(part, "meta", "name = 'history_lost'");
  if (meta === undefined) return "complete";
  return (JSON.parse(meta.value) as { isReconciling: boolean }).isReconciling ? "reconciling" : "lost";
}
