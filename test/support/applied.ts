import type { Result } from "../../src/coordinator/kernel/refusal.ts";
import type { CellStatus, Envelope } from "../../src/coordinator/kernel/messages.ts";

/** A ledger, or a stub of one. */
interface StatusPeer {
  status(message: Envelope): Promise<Result<CellStatus>>;
}

/** Waits until every shard has applied the decisions of a ledger. A commit is answered before that (C3). */
export async function untilApplied(ledger: StatusPeer, envelope: Envelope): Promise<void> {
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    const status = await ledger.status(envelope);
    if (!status.ok) throw new Error(status.refusal.detail);
    if (status.value.unappliedDecisions === 0) return;
  }
  throw new Error("a decision was not applied by all shards");
}
