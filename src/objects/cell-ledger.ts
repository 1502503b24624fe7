import { DurableObject } from "cloudflare:workers";
import type { Ledger } from "../core/ledger/ledger.ts";
import type * as messages from "../core/messages.ts";
import type { Env } from "../env.ts";
import type { LedgerCalls } from "./calls.ts";
import { makeLedger } from "./make.ts";
import { objectPorts, type PortsOf } from "./ports.ts";

/** The Durable Object of one cell's ledger. The protocol is in core/ledger. */
export class CellLedger extends DurableObject<Env> implements LedgerCalls {
  readonly #ledger: Ledger;

  constructor(ctx: DurableObjectState, env: Env, portsOf: PortsOf = objectPorts) {
    super(ctx, env);
    this.#ledger = makeLedger(ctx.id, portsOf(ctx), env);
  }

  begin(request: messages.BeginRequest): Promise<messages.Reply<messages.BeginAnswer>> {
    return this.#ledger.begin(request);
  }

  decide(request: messages.DecideRequest): Promise<messages.Reply<messages.Lease>> {
    return this.#ledger.decide(request);
  }

  getLease(request: messages.LeaseRequest): Promise<messages.Reply<messages.Lease>> {
    return this.#ledger.get(request);
  }

  listLeases(request: messages.ListLeasesRequest): Promise<messages.Reply<messages.LeasePage>> {
    return this.#ledger.list(request);
  }

  authorize(request: messages.CellCall): Promise<messages.Reply<null>> {
    return this.#ledger.authorize(request);
  }

  inquire(message: messages.Inquiry): Promise<messages.Reply<messages.InquiryAnswer>> {
    return this.#ledger.inquire(message);
  }

  pull(message: messages.Pull): Promise<messages.Reply<messages.PullAnswer>> {
    return this.#ledger.pull(message);
  }

  maintain(message: messages.Maintain): Promise<messages.Reply<messages.MaintainAnswer>> {
    return this.#ledger.maintain(message);
  }

  status(message: messages.Envelope): Promise<messages.Reply<messages.CellStatus>> {
    return this.#ledger.status(message);
  }

  leaseStates(
    message: messages.Envelope & { leases: string[] },
  ): Promise<messages.Reply<(messages.LeaseState | null)[]>> {
    return this.#ledger.leaseStates(message);
  }

  setState(message: messages.SetState): Promise<messages.Reply<null>> {
    return this.#ledger.setState(message);
  }

  revoke(message: messages.Envelope & { keyId: string; expiresAtMs: number }): Promise<messages.Reply<null>> {
    return this.#ledger.revoke(message);
  }

  override alarm(): Promise<void> {
    return this.#ledger.alarm();
  }
}
