import { DurableObject } from "cloudflare:workers";
import type { AuditPage, PullAudit } from "../core/audit.ts";
import type { GrowthProgress, GrowthStep, Receive, Received } from "../core/growth/messages.ts";
import type * as messages from "../core/messages.ts";
import type { ShardMetrics } from "../core/metrics/messages.ts";
import type { Shard } from "../core/shard/shard.ts";
import type * as transfers from "../core/transfer/messages.ts";
import type { Env } from "../env.ts";
import type { Answer, ShardCalls } from "./calls.ts";
import { makeShard } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of one shard. The protocol is in core/shard. */
export class ClaimShard extends DurableObject<Env> implements ShardCalls {
  readonly #shard: Shard;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#shard = makeShard(ctx.id, portsOf(ctx), env);
  }

  exchange(message: messages.Exchange): Promise<messages.Reply<messages.ExchangeAnswer>> {
    return this.#shard.exchange(message);
  }

  settle(message: messages.Settle): Promise<messages.Reply<messages.SettleAnswer>> {
    return this.#shard.settle(message);
  }

  wait(message: messages.WaitForName): Promise<messages.Reply<messages.WaitAnswer>> {
    return this.#shard.wait(message);
  }

  leave(message: messages.LeaveQueue): Promise<messages.Reply<null>> {
    return this.#shard.leave(message);
  }

  lookup(message: messages.LookupRequest): Answer<messages.LookupAnswer> {
    return this.#tell(this.#shard.lookup(message));
  }

  report(message: messages.ReportRequest): Answer<messages.Report> {
    return this.#tell(this.#shard.report(message));
  }

  listChanges(message: messages.ChangesRequest): Answer<messages.ChangesPage> {
    return this.#tell(this.#shard.listChanges(message));
  }

  listRecords(message: messages.ListRecordsRequest): Answer<messages.ListRecordsAnswer> {
    return this.#tell(this.#shard.listRecords(message));
  }

  digestRecords(message: messages.DigestRecordsRequest): Answer<messages.DigestRecordsAnswer> {
    return this.#tell(this.#shard.digestRecords(message));
  }

  planTransfer(message: transfers.PlanTransfer): Answer<transfers.TransferPlan> {
    return this.#tell(this.#shard.planTransfer(message));
  }

  findNames(message: messages.FindNames): Answer<messages.FoundNames> {
    return this.#tell(this.#shard.findNames(message));
  }

  countCellClaims(message: messages.CountCellClaims): Answer<messages.CellClaimCounts> {
    return this.#tell(this.#shard.countCellClaims(message));
  }

  ping(message: messages.PingShard): Answer<messages.ShardWork> {
    return this.#tell(this.#shard.ping(message));
  }

  listPeriods(message: messages.ListPeriods): Answer<messages.PeriodPage> {
    return this.#tell(this.#shard.listPeriods(message));
  }

  erasePeriods(message: messages.ErasePeriods): Answer<messages.ErasedPeriods> {
    return this.#tell(this.#shard.erasePeriods(message));
  }

  pullAudit(message: PullAudit): Answer<AuditPage> {
    return this.#tell(this.#shard.pullAudit(message));
  }

  async #tell<T>(answer: Promise<messages.Reply<T>>): Answer<T> {
    return { ...(await answer), ...this.#shard.told() };
  }

  part(message: messages.Envelope): Answer<messages.PartStatus> {
    return this.#tell(this.#shard.part(message));
  }

  metrics(message: messages.Envelope): Answer<ShardMetrics> {
    return this.#tell(this.#shard.metrics(message));
  }

  scrub(message: messages.ScrubStep): Answer<messages.ScrubStatus> {
    return this.#tell(this.#shard.scrub(message));
  }

  scrubStatus(message: messages.Envelope): Answer<messages.ScrubStatus> {
    return this.#tell(this.#shard.scrubStatus(message));
  }

  checkHolds(message: messages.CheckHolds): Promise<messages.Reply<messages.HoldCheck>> {
    return this.#shard.checkHolds(message);
  }

  reconcile(message: messages.ReconcileShard): Answer<messages.ShardReconciliation> {
    return this.#tell(this.#shard.reconcile(message));
  }

  finishReconciliation(message: messages.FinishShard): Answer<messages.PartStatus> {
    return this.#tell(this.#shard.finishReconciliation(message));
  }

  listCellClaims(message: messages.ListCellClaims): Promise<messages.Reply<messages.CellClaims>> {
    return this.#shard.listCellClaims(message);
  }

  listHolds(message: messages.ListHolds): Promise<messages.Reply<messages.HoldPage>> {
    return this.#shard.listHolds(message);
  }

  growStep(message: GrowthStep): Answer<GrowthProgress> {
    return this.#tell(this.#shard.growStep(message));
  }

  growthProgress(message: messages.Envelope): Answer<GrowthProgress> {
    return this.#tell(this.#shard.growthProgress(message));
  }

  receive(message: Receive): Promise<messages.Reply<Received>> {
    return this.#shard.receive(message);
  }

  override alarm(): Promise<void> {
    return this.#shard.alarm();
  }
}
