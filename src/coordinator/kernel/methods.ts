import type * as directory from "./directory/messages.ts";
import type * as messages from "./messages.ts";
import { method, peerMethod, type Calls } from "./method.ts";
import type * as metrics from "./metrics/messages.ts";

// The methods of each object. Its Durable Object class, its stubs, the host in Node, the names in traces and
// the simulator follow from its list.

export const ledgerMethods = {
  begin: method<messages.BeginRequest, messages.BeginAnswer>("call"),
  giveUp: method<messages.GiveUp, null>("peer"),
  decide: method<messages.DecideRequest, messages.PlacedLease>("call"),
  getLease: method<messages.LeaseRequest, messages.Lease>("call"),
  inquire: peerMethod<messages.Inquiry, messages.InquiryAnswer>("read", {
    sender: ({ shard }) => `shard ${shard}`,
  }),
  maintain: method<messages.Maintain, messages.MaintainAnswer>("peer"),
  status: method<messages.Envelope, messages.CellStatus>("peer"),
  metrics: method<messages.Envelope, metrics.LedgerMetrics>("always"),
};

/** The sender of what a ledger tells shards. */
export const ofLedger = { sender: ({ cell }: { cell: string }) => `the ledger of cell ${cell}` };

export const shardMethods = {
  exchange: peerMethod<messages.Exchange, messages.ExchangeAnswer>("peer", ofLedger),
  settle: peerMethod<messages.Settle, messages.SettleAnswer>("peer"),
  lookup: method<messages.LookupRequest, messages.LookupAnswer>("read"),
  ping: method<messages.PingShard, messages.ShardWork>("peer"),
  metrics: method<messages.Envelope, metrics.ShardMetrics>("always"),
};

export const directoryMethods = {
  confirm: peerMethod<messages.Confirm, directory.Confirmed>("unplaced"),
  snapshot: method<directory.SnapshotRequest, directory.Snapshot>("read"),
  metrics: method<messages.Envelope, metrics.DirectoryMetrics>("always"),
};

export interface LedgerCalls extends Calls<typeof ledgerMethods> {}
export interface ShardCalls extends Calls<typeof shardMethods> {}
export interface DirectoryCalls extends Calls<typeof directoryMethods> {}

/** The other objects, for an object to call. */
export interface Peers {
  ledger(cell: string): LedgerCalls;
  shard(index: number): ShardCalls;
  directory(): DirectoryCalls;
}
