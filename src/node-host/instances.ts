import type { Reply, Told } from "../core/messages.ts";
import type { Ports } from "../core/ports.ts";
import type { Env } from "../env.ts";
import type { Answer, DirectoryCalls, LedgerCalls, ShardCalls } from "../objects/calls.ts";
import { makeDirectory, makeLedger, makeShard } from "../objects/make.ts";
import type { Instance } from "./hosted-object.ts";

/** The part of an object that says how far it has got in its history. */
interface Telling {
  told(): Told;
}

/** Adds to an answer how far its part has got (H2), as the Durable Object classes do. */
const tell = async <T>(part: Telling, answer: Promise<Reply<T>>): Answer<T> => ({
  ...(await answer),
  ...part.told(),
});

// The objects of the core, with the methods of the Durable Object classes.

export function ledgerInstance(name: string, ports: Ports, env: Env): Instance {
  const ledger = makeLedger({ name }, ports, env);
  const calls: LedgerCalls = {
    begin: (request) => tell(ledger, ledger.begin(request)),
    giveUp: (message) => tell(ledger, ledger.giveUp(message)),
    decide: (request) => tell(ledger, ledger.decide(request)),
    renew: (request) => tell(ledger, ledger.renew(request)),
    getLease: (request) => tell(ledger, ledger.getLease(request)),
    listLeases: (request) => tell(ledger, ledger.listLeases(request)),
    authorize: (request) => tell(ledger, ledger.authorize(request)),
    endRead: (message) => tell(ledger, ledger.endRead(message)),
    prepareTransfer: (request) => tell(ledger, ledger.prepareTransfer(request)),
    acceptTransfer: (call) => tell(ledger, ledger.acceptTransfer(call)),
    reportTransfer: (call) => tell(ledger, ledger.reportTransfer(call)),
    decideTransfer: (call) => tell(ledger, ledger.decideTransfer(call)),
    getTransfer: (call) => tell(ledger, ledger.getTransfer(call)),
    listTransfers: (call) => tell(ledger, ledger.listTransfers(call)),
    inquire: (message) => ledger.inquire(message),
    pull: (message) => tell(ledger, ledger.pull(message)),
    maintain: (message) => tell(ledger, ledger.maintain(message)),
    seenShards: (message) => tell(ledger, ledger.seenShards(message)),
    status: (message) => tell(ledger, ledger.status(message)),
    leaseStates: (message) => tell(ledger, ledger.leaseStates(message)),
    setState: (message) => tell(ledger, ledger.setState(message)),
    startRemoval: (message) => tell(ledger, ledger.startRemoval(message)),
    cancelRemoval: (message) => tell(ledger, ledger.cancelRemoval(message)),
    removalStep: (message) => tell(ledger, ledger.removalStep(message)),
    revoke: (message) => tell(ledger, ledger.revoke(message)),
    reportStatus: (message) => tell(ledger, ledger.reportStatus(message)),
    reportedStatus: (message) => tell(ledger, ledger.reportedStatus(message)),
    pullAudit: (message) => tell(ledger, ledger.pullAudit(message)),
    part: (message) => tell(ledger, ledger.part(message)),
    metrics: (message) => tell(ledger, ledger.metrics(message)),
    scrub: (message) => tell(ledger, ledger.scrub(message)),
    scrubStatus: (message) => tell(ledger, ledger.scrubStatus(message)),
    reconcile: (message) => tell(ledger, ledger.reconcile(message)),
    knowledge: (message) => ledger.knowledge(message),
  };
  return { calls, alarm: () => ledger.alarm() };
}

export function shardInstance(name: string, ports: Ports, env: Env): Instance {
  const shard = makeShard({ name }, ports, env);
  const calls: ShardCalls = {
    exchange: (message) => shard.exchange(message),
    settle: (message) => shard.settle(message),
    wait: (message) => shard.wait(message),
    leave: (message) => shard.leave(message),
    lookup: (message) => tell(shard, shard.lookup(message)),
    report: (message) => tell(shard, shard.report(message)),
    listChanges: (message) => tell(shard, shard.listChanges(message)),
    listRecords: (message) => tell(shard, shard.listRecords(message)),
    digestRecords: (message) => tell(shard, shard.digestRecords(message)),
    ping: (message) => tell(shard, shard.ping(message)),
    listPeriods: (message) => tell(shard, shard.listPeriods(message)),
    erasePeriods: (message) => tell(shard, shard.erasePeriods(message)),
    pullAudit: (message) => tell(shard, shard.pullAudit(message)),
    part: (message) => tell(shard, shard.part(message)),
    metrics: (message) => tell(shard, shard.metrics(message)),
    scrub: (message) => tell(shard, shard.scrub(message)),
    scrubStatus: (message) => tell(shard, shard.scrubStatus(message)),
    checkHolds: (message) => shard.checkHolds(message),
    reconcile: (message) => tell(shard, shard.reconcile(message)),
    finishReconciliation: (message) => tell(shard, shard.finishReconciliation(message)),
    listHolds: (message) => shard.listHolds(message),
    listCellClaims: (message) => shard.listCellClaims(message),
    findNames: (message) => tell(shard, shard.findNames(message)),
    planTransfer: (message) => tell(shard, shard.planTransfer(message)),
    growStep: (message) => tell(shard, shard.growStep(message)),
    growthProgress: (message) => tell(shard, shard.growthProgress(message)),
    receive: (message) => shard.receive(message),
    countCellClaims: (message) => tell(shard, shard.countCellClaims(message)),
  };
  return { calls, alarm: () => shard.alarm() };
}

export function directoryInstance(ports: Ports, env: Env): Instance {
  const directory = makeDirectory(ports, env);
  const calls: DirectoryCalls = {
    confirm: (message) => directory.confirm(message),
    growth: (message) => tell(directory, directory.growth(message)),
    startGrowth: (message) => tell(directory, directory.startGrowth(message)),
    cutGrowth: (message) => tell(directory, directory.cutGrowth(message)),
    confirmCut: (message) => tell(directory, directory.confirmCut(message)),
    abortGrowth: (message) => tell(directory, directory.abortGrowth(message)),
    finishGrowth: (message) => tell(directory, directory.finishGrowth(message)),
    operations: (message) => tell(directory, directory.operations(message)),
    beginOperation: (message) => tell(directory, directory.beginOperation(message)),
    endOperation: (message) => tell(directory, directory.endOperation(message)),
    endRestore: (message) => tell(directory, directory.endRestore(message)),
    snapshot: (message) => tell(directory, directory.snapshot(message)),
    types: (message) => tell(directory, directory.types(message)),
    changeTypes: (message) => tell(directory, directory.changeTypes(message)),
    changeIdentities: (message) => tell(directory, directory.changeIdentities(message)),
    useTypes: (message) => tell(directory, directory.useTypes(message)),
    addCell: (message) => tell(directory, directory.addCell(message)),
    changeCell: (message) => tell(directory, directory.changeCell(message)),
    removeCell: (message) => tell(directory, directory.removeCell(message)),
    recordKey: (message) => tell(directory, directory.recordKey(message)),
    keyToRevoke: (message) => tell(directory, directory.keyToRevoke(message)),
    listKeys: (message) => tell(directory, directory.listKeys(message)),
    revokeKey: (message) => tell(directory, directory.revokeKey(message)),
    pullAudit: (message) => tell(directory, directory.pullAudit(message)),
    revokedKeysOf: (message) => tell(directory, directory.revokedKeysOf(message)),
    takeSlot: (message) => tell(directory, directory.takeSlot(message)),
    releaseSlot: (message) => tell(directory, directory.releaseSlot(message)),
    compare: (message) => tell(directory, directory.compare(message)),
    part: (message) => tell(directory, directory.part(message)),
    isRevoked: (message) => tell(directory, directory.isRevoked(message)),
    metrics: (message) => tell(directory, directory.metrics(message)),
    reconcile: (message) => tell(directory, directory.reconcile(message)),
  };
  return { calls };
}
