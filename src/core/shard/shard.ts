import { GroupCommit } from "../group-commit.ts";
import type { Limits } from "../limits.ts";
import type {
  Decision,
  DigestRecordsAnswer,
  DigestRecordsRequest,
  Envelope,
  Exchange,
  ExchangeAnswer,
  ListRecordsAnswer,
  ListRecordsRequest,
  LookupAnswer,
  LookupRequest,
  PrepareAnswer,
  Reply,
  Settle,
  SettleAnswer,
} from "../messages.ts";
import { migrate } from "../meta.ts";
import type { Ports } from "../ports.ts";
import { ok, refused, type Refusal } from "../refusal.ts";
import { bucketTypes, sourceTypes, subjectTypes } from "../registry.ts";
import { PlacementGuard, type DirectoryPeer } from "../placement-guard.ts";
import { digestRecords } from "./digest-records.ts";
import { Inquirer, type LedgerPeer } from "./inquirer.ts";
import { prepare } from "./prepare.ts";
import { ShardReader } from "./reader.ts";
import { shardSchema } from "./schema.ts";
import type { HoldRow } from "./rows.ts";
import { ShardStore } from "./store.ts";
import { Sweeper } from "./sweeper.ts";

export interface ShardPeers {
  directory: DirectoryPeer;
  ledger: LedgerPeer;
}

/**
 * Serializes everything that happens to its buckets. The protocol needs nothing that a shard has only in
 * memory: a crash loses answers and nothing else.
 */
export class Shard {
  readonly #ports: Ports;
  readonly #store: ShardStore;
  readonly #placementGuard: PlacementGuard;
  readonly #commits: GroupCommit;
  readonly #inquirer: Inquirer;
  readonly #reader: ShardReader;
  readonly #sweeper: Sweeper;

  constructor(index: number, ports: Ports, limits: Limits, peers: ShardPeers) {
    migrate(ports.sql, shardSchema);
    this.#ports = ports;
    this.#store = new ShardStore(ports.sql);
    this.#placementGuard = new PlacementGuard(ports, limits, peers.directory, () => this.#sweeper.start());
    this.#commits = new GroupCommit(ports.sql, ports.clock, ports.halt, () => this.#store.reserveEpochs());
    this.#inquirer = new Inquirer(
      index,
      ports,
      limits,
      this.#store,
      this.#placementGuard,
      this.#commits,
      peers.ledger,
    );
    this.#reader = new ShardReader(this.#store, this.#inquirer);
    this.#sweeper = new Sweeper(ports, limits, this.#store, this.#inquirer);
  }

  /**
   * Applies the decisions and then the prepares of any number of leases, in one transaction (N1, N2). It
   * waits for no other object.
   */
  async exchange(message: Exchange): Promise<Reply<ExchangeAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const unknown = unknownType(message);
    if (unknown !== undefined) {
      return refused(
        "UNAVAILABLE",
        `the type ${unknown} is unknown to this version; retry when the deployment is complete`,
        { reason: "MESSAGE_VERSION" },
      );
    }
    const prepares = await this.#commits.submit("exchange", () => this.#carryOut(message), weightOf(message));
    return ok({ prepares });
  }

  #carryOut({ decisions, prepares }: Exchange): PrepareAnswer[] {
    const now = this.#ports.clock.now();
    for (const decision of decisions) this.#decide(decision, now);
    const answers = prepares.map((request) =>
      prepare(this.#store, this.#ports.randomness, now, request, () => this.#store.raiseEpoch()),
    );
    // Refused prepares also arm the alarm: they met a hold, and its alarm may have been lost (M3).
    if (prepares.length > 0) this.#sweeper.arm();
    return answers;
  }

  /**
   * Applies a decision to its own holds and to nothing else. If a hold is missing, the decision was applied
   * before (C2).
   */
  #decide(decision: Decision, now: number): void {
    for (const key of decision.keys) {
      const hold = this.#store.hold(key);
      if (hold === undefined || !decides(decision, hold)) continue;
      if (decision.outcome === "COMMITTED") this.#store.apply(hold, now);
      this.#store.deleteHold(hold);
    }
  }

  /**
   * Inquires about the holds on these keys and clears those that are over (B8). Returns one state per key.
   */
  async settle(message: Settle): Promise<Reply<SettleAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    return ok({ states: await this.#inquirer.settle(message.keys) });
  }

  async lookup(message: LookupRequest): Promise<Reply<LookupAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const found = await this.#reader.lookup(message.keys);
    await this.#ports.sql.flush();
    return ok({ found });
  }

  async listRecords(message: ListRecordsRequest): Promise<Reply<ListRecordsAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const answer = await this.#reader.listRecords(message);
    await this.#ports.sql.flush();
    return answer;
  }

  /** Returns digests of ranges (R4). */
  async digestRecords(message: DigestRecordsRequest): Promise<Reply<DigestRecordsAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const answer = digestRecords(this.#store, message);
    await this.#ports.sql.flush();
    return ok(answer);
  }

  /**
   * Called by the readiness check and by the cron. Confirms the placement, reads the disk, and sets the alarm
   * again if it was lost (M3).
   */
  async ping(message: Envelope): Promise<Reply<null>> {
    const refusal: Refusal | undefined = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    this.#sweeper.arm();
    return ok(null);
  }

  alarm(): Promise<void> {
    return this.#sweeper.run();
  }
}

/**
 * Returns the first type in the message that this version does not know. During a deployment, a newer ledger
 * may use such a type. The message is refused before anything is written (M5).
 */
function unknownType({ decisions, prepares }: Exchange): string | undefined {
  for (const { keys } of decisions)
    for (const { type } of keys) if (!Object.hasOwn(bucketTypes, type)) return type;
  for (const { type, subject, source } of prepares.flatMap(({ ops }) => ops)) {
    if (!Object.hasOwn(bucketTypes, type)) return type;
    if (subject !== undefined && !Object.hasOwn(subjectTypes, subject.type)) return subject.type;
    if (source !== undefined && !Object.hasOwn(sourceTypes, source.type)) return source.type;
  }
  return undefined;
}

const weightOf = ({ decisions, prepares }: Exchange): number =>
  decisions.reduce((sum, { keys }) => sum + keys.length, 0) +
  prepares.reduce((sum, { ops }) => sum + ops.length, 0) +
  1;

function decides({ cell, lease, incarnation, counter, epoch }: Decision, hold: HoldRow): boolean {
  return (
    hold.cell === cell &&
    hold.lease === lease &&
    hold.incarnation === incarnation &&
    hold.counter === counter &&
    (epoch === null || hold.epoch === epoch)
  );
}
