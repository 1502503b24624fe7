import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type {
  BeginAnswer,
  BeginRequest,
  CellCall,
  CellStatus,
  DecideRequest,
  Envelope,
  Inquiry,
  InquiryAnswer,
  Lease,
  LeasePage,
  LeaseRequest,
  LeaseState,
  ListLeasesRequest,
  Maintain,
  MaintainAnswer,
  Pull,
  PullAnswer,
  Reply,
  SetState,
} from "../messages.ts";
import { migrate } from "../meta.ts";
import type { Ports } from "../ports.ts";
import { changedMeanwhile, ok, refused, type Refusal } from "../refusal.ts";
import { PlacementGuard, type DirectoryPeer } from "../placement-guard.ts";
import { Begins, keyRevoked, leaseIdReused, rolledBack } from "./begins.ts";
import { Decisions } from "./decisions.ts";
import { Deliveries } from "./deliveries.ts";
import { answerQuestion } from "./inquiry.ts";
import { ShardLinks, type ShardPeer } from "./shard-links.ts";
import { Positions, positionAt } from "./position.ts";
import { prune } from "./prune.ts";
import { ledgerSchema } from "./schema.ts";
import { LedgerStore } from "./store.ts";

export interface LedgerPeers {
  directory: DirectoryPeer;
  shard: ShardPeer;
}

/**
 * The largest stored payload in one page of a pull, in bytes. As objects, many short names take ten times
 * that, and the platform limits an answer to 32 MiB.
 */
const PULL_BYTES = 1_000_000;

/**
 * Stores one cell's leases and coordinates its begins, commits and rollbacks. Every answer waits until the
 * rows that it was read from are durable, because a crash could still undo them (B5, C2).
 */
export class Ledger {
  readonly #ports: Ports;
  readonly #limits: Limits;
  readonly #cell: string;
  readonly #store: LedgerStore;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #begins: Begins;
  readonly #deliveries: Deliveries;
  readonly #decisions: Decisions;
  #halted = false;

  constructor(cell: string, ports: Ports, limits: Limits, peers: LedgerPeers) {
    migrate(ports.sql, ledgerSchema);
    this.#ports = ports;
    this.#limits = limits;
    this.#cell = cell;
    this.#store = new LedgerStore(ports.sql, cell);
    this.#placementGuard = new PlacementGuard(
      ports,
      limits,
      peers.directory,
      () => this.#deliveries.start(),
      cell,
    );
    const links = new ShardLinks(ports.clock, limits, this.#placementGuard, peers.shard, () => this.#halted);
    const halt = (reason: unknown): void => {
      this.#halted = true;
      ports.halt(reason);
    };
    this.#deliveries = new Deliveries(ports, limits, this.#store, links, cell);
    this.#commits = new GroupCommit(ports.sql, ports.clock, halt);
    const positions = new Positions(this.#store.lastPosition());
    this.#begins = new Begins(ports, limits, this.#store, links, this.#commits, positions, cell);
    this.#decisions = new Decisions(
      ports,
      limits,
      this.#store,
      this.#commits,
      positions,
      this.#begins,
      this.#deliveries,
    );
  }

  async begin(request: BeginRequest): Promise<Reply<BeginAnswer>> {
    const refusal = await this.#refuseCall(request);
    if (refusal !== undefined) return { ok: false, refusal };
    const row = this.#store.findWhole(request.lease);
    if (row !== undefined) {
      if (row.fence === 0 && row.payload_hash !== request.payloadHash)
        return { ok: false, refusal: leaseIdReused() };
      if (row.state === "ROLLED_BACK") return this.#durable(rolledBack());
      return this.#durable(ok({ lease: this.#store.leaseOf(row, this.#ports.clock.now()), created: false }));
    }
    const unfit = this.#begins.isRunning(request.lease) ? undefined : this.#begins.grantRefusal(request);
    if (unfit !== undefined) return { ok: false, refusal: unfit };
    const begun = this.#begins.begin(request);
    return begun instanceof Promise ? begun : { ok: false, refusal: begun };
  }

  async decide(request: DecideRequest): Promise<Reply<Lease>> {
    const refusal = await this.#refuseCall(request);
    return refusal === undefined ? this.#decisions.decide(request) : { ok: false, refusal };
  }

  async get(request: LeaseRequest): Promise<Reply<Lease>> {
    const refusal = await this.#refuseCall(request);
    if (refusal !== undefined) return { ok: false, refusal };
    const row = this.#store.findWhole(request.lease);
    if (row === undefined) return refused("NOT_FOUND", "this cell has no lease with this id");
    return this.#durable(ok(this.#store.leaseOf(row, this.#ports.clock.now())));
  }

  /**
   * Lists granted leases, complete as of this call (R1). It reads only this ledger's rows, which are
   * authoritative.
   */
  async list(request: ListLeasesRequest): Promise<Reply<LeasePage>> {
    const refusal = await this.#refuseCall(request);
    if (refusal !== undefined) return { ok: false, refusal };
    const after = Math.max(request.afterPosition, positionAt(request.createdAfterMs) - 1);
    const rows = this.#store.granted(after, request.limit + 1);
    const page = rows.slice(0, request.limit);
    const now = this.#ports.clock.now();
    const nextPosition = rows.length > page.length ? (page.at(-1)?.position ?? 0) : 0;
    return this.#durable(ok({ leases: page.map((row) => this.#store.leaseOf(row, now)), nextPosition }));
  }

  /** Checks only whether the caller's key is valid, for reads that the shards answer. */
  async authorize(request: CellCall): Promise<Reply<null>> {
    const refusal = await this.#refuseCall(request);
    return refusal === undefined ? ok(null) : { ok: false, refusal };
  }

  /**
   * Answers a shard's inquiry. It reads rows and running begins in one turn, and answers once the rows are
   * durable (B8).
   */
  async inquire(message: Inquiry): Promise<Reply<InquiryAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const verdicts = message.questions.map((question) =>
      answerQuestion(this.#store, this.#begins, message.shard, question),
    );
    return this.#durable(ok({ verdicts }));
  }

  async pull(message: Pull): Promise<Reply<PullAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const now = this.#ports.clock.now();
    const { rows, more } = this.#store.changes(message.afterPosition, message.limit, PULL_BYTES);
    const changes = rows.map((row) => this.#store.changeOf(row, now));
    return this.#durable(
      ok({ changes, throughPosition: rows.at(-1)?.position ?? message.afterPosition, more }),
    );
  }

  /**
   * Called by the cron: resumes unfinished work whose alarm was lost (M3), and deletes outcomes that are old
   * enough.
   */
  async maintain(message: Maintain): Promise<Reply<MaintainAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    await this.#deliveries.deliverDue(this.#commits);
    const pruned = await prune(
      this.#store,
      this.#commits,
      this.#decisions,
      this.#limits,
      this.#ports.clock.now(),
      message.pulledPosition,
    );
    return ok({ pruned, unapplied: this.#deliveries.unapplied });
  }

  async status(message: Envelope): Promise<Reply<CellStatus>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#durable(
      ok({
        cell: this.#cell,
        state: this.#store.cellState(),
        stateVersion: this.#store.number("cell_state_version"),
        outstandingLeases: this.#begins.outstanding,
        unappliedDecisions: this.#deliveries.unapplied,
      }),
    );
  }

  /**
   * Returns the current state of each lease, so that the stale listing can leave out decided leases. Null:
   * the ledger does not know the lease, or has forgotten it.
   */
  async leaseStates(message: Envelope & { leases: string[] }): Promise<Reply<(LeaseState | null)[]>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#durable(ok(message.leases.map((lease) => this.#store.find(lease)?.state ?? null)));
  }

  async setState(message: SetState): Promise<Reply<null>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return this.#commits.submit("set_state", () => {
      const isCurrent = message.stateVersion === this.#store.number("cell_state_version");
      if (!isCurrent && message.state !== this.#store.cellState())
        return changedMeanwhile(`cell ${this.#cell}`);
      // A change that keeps the state also makes a new version, so that messages sent before it are refused
      // afterwards (A2).
      this.#store.setCellState(message.state);
      return ok(null);
    });
  }

  /**
   * Revokes a key of the cell. Every call of a cell is checked here, so the key is refused once the
   * revocation is durable (A1).
   */
  async revoke(message: Envelope & { keyId: string; expiresAtMs: number }): Promise<Reply<null>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const now = this.#ports.clock.now();
    await this.#commits.submit(
      "revoke_cell_key",
      () => (this.#store.revoke(message.keyId, message.expiresAtMs, now), null),
    );
    return ok(null);
  }

  alarm(): Promise<void> {
    return this.#deliveries.deliverDue(this.#commits);
  }

  async #refuseCall(call: CellCall): Promise<Refusal | undefined> {
    const refusal = await this.#placementGuard.admit(call);
    if (refusal !== undefined) return refusal;
    if (call.caller.role === "cell" && this.#store.isRevoked(call.caller.keyId)) {
      return keyRevoked();
    }
    return undefined;
  }

  async #durable<T>(reply: Reply<T>): Promise<Reply<T>> {
    await this.#ports.sql.flush();
    return reply;
  }
}
