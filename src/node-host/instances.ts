import type { Ledger } from "../core/ledger/ledger.ts";
import type { Reply } from "../core/messages.ts";
import type { Ports } from "../core/ports.ts";
import type { Env } from "../env.ts";
import type { Answer, DirectoryCalls, LedgerCalls, ShardCalls } from "../objects/calls.ts";
import { makeDirectory, makeLedger, makeShard } from "../objects/make.ts";
import type { Instance } from "./hosted-object.ts";

/** Adds to an answer how far the ledger has got. */
const tell = async <T>(ledger: Ledger, answer: Promise<Reply<T>>): Answer<T> => ({
  ...(await answer),
  ...ledger.told(),
});

// The objects of the core, with the same method names as the Durable Object classes.

export function ledgerInstance(name: string, ports: Ports, env: Env): Instance {
  const ledger = makeLedger({ name }, ports, env);
  const calls: LedgerCalls = {
    begin: (request) => tell(ledger, ledger.begin(request)),
    decide: (request) => tell(ledger, ledger.decide(request)),
    getLease: (request) => tell(ledger, ledger.get(request)),
    listLeases: (request) => tell(ledger, ledger.list(request)),
    authorize: (request) => ledger.authorize(request),
    endRead: (message) => ledger.endRead(message),
    inquire: (message) => ledger.inquire(message),
    pull: (message) => ledger.pull(message),
    maintain: (message) => ledger.maintain(message),
    status: (message) => ledger.status(message),
    leaseStates: (message) => ledger.leaseStates(message),
    setState: (message) => ledger.setState(message),
    revoke: (message) => ledger.revoke(message),
    part: (message) => ledger.part(message),
    reconcile: (message) => ledger.reconcile(message),
    knowledge: (message) => ledger.knowledge(message),
  };
  return { calls, alarm: () => ledger.alarm() };
}

export function shardInstance(name: string, ports: Ports, env: Env): Instance {
  const shard = makeShard({ name }, ports, env);
  const calls: ShardCalls = {
    exchange: (message) => shard.exchange(message),
    settle: (message) => shard.settle(message),
    lookup: (message) => shard.lookup(message),
    listRecords: (message) => shard.listRecords(message),
    digestRecords: (message) => shard.digestRecords(message),
    ping: (message) => shard.ping(message),
    part: (message) => shard.part(message),
    reconcile: (message) => shard.reconcile(message),
    finishReconciliation: (message) => shard.finishReconciliation(message),
    listHolds: (message) => shard.listHolds(message),
  };
  return { calls, alarm: () => shard.alarm() };
}

export function directoryInstance(ports: Ports, env: Env): Instance {
  const directory = makeDirectory(ports, env);
  const calls: DirectoryCalls = {
    confirm: (message) => directory.confirm(message),
    snapshot: (message) => directory.snapshot(message),
    types: (message) => directory.types(message),
    changeTypes: (message) => directory.changeTypes(message),
    useTypes: (message) => directory.useTypes(message),
    addCell: (message) => directory.addCell(message),
    changeCell: (message) => directory.changeCell(message),
    recordKey: (message) => directory.recordKey(message),
    keyToRevoke: (message) => directory.keyToRevoke(message),
    listKeys: (message) => directory.listKeys(message),
    revokeKey: (message) => directory.revokeKey(message),
    revokedKeysOf: (message) => directory.revokedKeysOf(message),
    takeSlot: (message) => directory.takeSlot(message),
    releaseSlot: (message) => directory.releaseSlot(message),
    compare: (message) => directory.compare(message),
    part: (message) => directory.part(message),
    isRevoked: (message) => directory.isRevoked(message),
    reconcile: (message) => directory.reconcile(message),
  };
  return { calls };
}
