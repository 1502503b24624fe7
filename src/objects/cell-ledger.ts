import { DurableObject } from "cloudflare:workers";
import type { AuditPage, PullAudit } from "../core/audit.ts";
import type { Ledger } from "../core/ledger/ledger.ts";
import type * as messages from "../core/messages.ts";
import type { LedgerMetrics } from "../core/metrics/messages.ts";
import type { ReportedStatus } from "../core/status.ts";
import type * as transfers from "../core/transfer/messages.ts";
import type { Env } from "../env.ts";
import type { Answer, LedgerCalls } from "./calls.ts";
import { makeLedger } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of one cell's ledger. The protocol is in core/ledger. */
export class CellLedger extends DurableObject<Env> implements LedgerCalls {
  readonly #ledger: Ledger;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#ledger = makeLedger(ctx.id, portsOf(ctx), env);
  }

  begin(request: messages.BeginRequest): Answer<messages.BeginAnswer> {
    return this.#tell(this.#ledger.begin(request));
  }

  giveUp(message: messages.GiveUp): Answer<null> {
    return this.#tell(this.#ledger.giveUp(message));
  }

  decide(request: messages.DecideRequest): Answer<messages.PlacedLease> {
    return this.#tell(this.#ledger.decide(request));
  }

  renew(request: messages.RenewRequest): Answer<messages.Lease> {
    return this.#tell(this.#ledger.renew(request));
  }

  getLease(request: messages.LeaseRequest): Answer<messages.Lease> {
    return this.#tell(this.#ledger.getLease(request));
  }

  listLeases(request: messages.ListLeasesRequest): Answer<messages.LeasePage> {
    return this.#tell(this.#ledger.listLeases(request));
  }

  authorize(request: messages.Authorize): Answer<null> {
    return this.#tell(this.#ledger.authorize(request));
  }

  endRead(message: messages.EndRead): Answer<null> {
    return this.#tell(this.#ledger.endRead(message));
  }

  prepareTransfer(request: transfers.PrepareTransfer): Answer<transfers.Transfer> {
    return this.#tell(this.#ledger.prepareTransfer(request));
  }

  acceptTransfer(call: transfers.TransferCall): Answer<transfers.Transfer> {
    return this.#tell(this.#ledger.acceptTransfer(call));
  }

  reportTransfer(call: transfers.ReportTransfer): Answer<transfers.Transfer> {
    return this.#tell(this.#ledger.reportTransfer(call));
  }

  decideTransfer(call: transfers.DecideTransfer): Answer<transfers.Transfer> {
    return this.#tell(this.#ledger.decideTransfer(call));
  }

  getTransfer(call: transfers.TransferCall): Answer<transfers.Transfer> {
    return this.#tell(this.#ledger.getTransfer(call));
  }

  listTransfers(call: transfers.ListTransfers): Answer<transfers.TransferPage> {
    return this.#tell(this.#ledger.listTransfers(call));
  }

  inquire(message: messages.Inquiry): Promise<messages.Reply<messages.InquiryAnswer>> {
    return this.#ledger.inquire(message);
  }

  pull(message: messages.Pull): Answer<messages.PullAnswer> {
    return this.#tell(this.#ledger.pull(message));
  }

  maintain(message: messages.Maintain): Answer<messages.MaintainAnswer> {
    return this.#tell(this.#ledger.maintain(message));
  }

  seenShards(message: messages.Envelope): Answer<messages.ShardPoints> {
    return this.#tell(this.#ledger.seenShards(message));
  }

  status(message: messages.Envelope): Answer<messages.CellStatus> {
    return this.#tell(this.#ledger.status(message));
  }

  reportStatus(message: messages.ReportStatus): Answer<ReportedStatus> {
    return this.#tell(this.#ledger.reportStatus(message));
  }

  reportedStatus(message: messages.CellCall): Answer<ReportedStatus | null> {
    return this.#tell(this.#ledger.reportedStatus(message));
  }

  leaseStates(message: messages.Envelope & { leases: string[] }): Answer<(messages.LeaseStatus | null)[]> {
    return this.#tell(this.#ledger.leaseStates(message));
  }

  setState(message: messages.SetState): Answer<null> {
    return this.#tell(this.#ledger.setState(message));
  }

  startRemoval(message: messages.StartRemoval): Answer<null> {
    return this.#tell(this.#ledger.startRemoval(message));
  }

  cancelRemoval(message: messages.CancelRemoval): Answer<null> {
    return this.#tell(this.#ledger.cancelRemoval(message));
  }

  removalStep(message: messages.RemovalStep): Answer<messages.RemovalProgress> {
    return this.#tell(this.#ledger.removalStep(message));
  }

  revoke(message: messages.RevokeCellKey): Answer<null> {
    return this.#tell(this.#ledger.revoke(message));
  }

  pullAudit(message: PullAudit): Answer<AuditPage> {
    return this.#tell(this.#ledger.pullAudit(message));
  }

  async #tell<T>(answer: Promise<messages.Reply<T>>): Answer<T> {
    return { ...(await answer), ...this.#ledger.told() };
  }

  part(message: messages.Envelope): Answer<messages.PartStatus> {
    return this.#tell(this.#ledger.part(message));
  }

  metrics(message: messages.Envelope): Answer<LedgerMetrics> {
    return this.#tell(this.#ledger.metrics(message));
  }

  scrub(message: messages.ScrubStep): Answer<messages.ScrubStatus> {
    return this.#tell(this.#ledger.scrub(message));
  }

  scrubStatus(message: messages.Envelope): Answer<messages.ScrubStatus> {
    return this.#tell(this.#ledger.scrubStatus(message));
  }

  reconcile(message: messages.ReconcileLedger): Answer<messages.LedgerReconciliation> {
    return this.#tell(this.#ledger.reconcile(message));
  }

  knowledge(message: messages.KnowledgeRequest): Promise<messages.Reply<messages.Knowledge>> {
    return this.#ledger.knowledge(message);
  }

  override alarm(): Promise<void> {
    return this.#ledger.alarm();
  }
}
