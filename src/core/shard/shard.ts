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
 * Serializes everything that happens to its buckets. It keeps nothing in memory that the protocol needs: a crash loses answers, and
 * nothing else.
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

  /** Decisions, then prepares, of any number of leases, in one transaction (rules N1, N2). Waits for nobody. */
  async exchange(message: Exchange): Promise<Reply<ExchangeAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const unknown = unknownType(message);
    if (unknown !== undefined) {
      return refused(
        "UNAVAILABLE",
        `${unknown} is not a type that this version knows; try again when the deployment has settled`,
        {
          reason: "MESSAGE_VERSION",
        },
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
    // Also when a refusal met a hold: an alarm that got lost is set again by whoever notices (rule M3).
    if (prepares.length > 0) this.#sweeper.arm();
    return answers;
  }

  /** A decision applies to its own holds and to nothing else; one that is not there was applied before (rule C2). */
  #decide(decision: Decision, now: number): void {
    for (const key of decision.keys) {
      const hold = this.#store.hold(key);
      if (hold === undefined || !decides(decision, hold)) continue;
      if (decision.outcome === "COMMITTED") this.#store.apply(hold, now);
      this.#store.deleteHold(hold);
    }
  }

  /** Finds out about the holds on these keys and clears what is over (rule B8). One state per key, as the ledgers answered. */
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

  /** Rule R4. */
  async digestRecords(message: DigestRecordsRequest): Promise<Reply<DigestRecordsAnswer>> {
    const refusal = await this.#placementGuard.admit(message);
    if (refusal !== undefined) return { ok: false, refusal };
    const answer = digestRecords(this.#store, message);
    await this.#ports.sql.flush();
    return ok(answer);
  }

  /** For readiness, and as the cron's poke: confirms the placement, reads the disk, and sets the alarm again if it got lost. */
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

/** While versions mix, a newer ledger may speak of a type that this one cannot store: refused before anything is written (rule M5). */
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
