import { randomUUID } from "node:crypto";
import type { Coordinator } from "../../src/hosts/workerd/coordinator.ts";
import { fanOut } from "../../src/coordinator/kernel/fan-out.ts";
import type { CountingClient } from "./counting-client.ts";
import type { WorkCounts, Work } from "./work-counts.ts";
import { batchOf, PlacedNames } from "./placed-names.ts";
import { ALARMS_PATH, CRON_PATH, ADVANCE_PATH, STOP_PATH } from "./raw-counts.ts";

/** How many uncounted leases are begun or decided at a time. */
const AT_ONCE = 25;
/** Longer than every retention time. */
const LONG_MS = 8 * 86_400_000;

export interface Lease {
  cell: string;
  uuid: string;
  names: string[];
}

type Running = Pick<Coordinator, "keys" | "stop">;

/** A coordinator that counts, and the calls that cells make to it. */
export class CountedCoordinator {
  readonly shards: number;
  readonly client: CountingClient;
  readonly names: PlacedNames;
  readonly #coordinator: Running;

  private constructor(shards: number, coordinator: Running, client: CountingClient) {
    this.shards = shards;
    this.#coordinator = coordinator;
    this.client = client;
    this.names = new PlacedNames(shards);
  }

  /** Uses each object of a coordinator once, because the first use of an object costs more. */
  static async start(shards: number, running: Running, client: CountingClient): Promise<CountedCoordinator> {
    const started = new CountedCoordinator(shards, running, client);
    for (const cell of Object.keys(running.keys.cells)) {
      const lease = await started.begin(cell, Math.max(shards, 2));
      await started.decide(lease, "rollback");
    }
    return started;
  }

  stop(): Promise<void> {
    return this.#coordinator.stop();
  }

  key(role: "router" | "operator"): string {
    return this.#coordinator.keys[role];
  }

  cellKey(cell: string): string {
    return this.#coordinator.keys.cells[cell] ?? "";
  }

  work(
    work: string,
    claims: number,
    rounds: number | null = null,
    shardsTouched = this.names.shardsTouched(claims),
  ): Work {
    return { system: "leasehold", work, shards: this.shards, claims, shardsTouched, rounds };
  }

  count(work: Work, calls: number, call: () => Promise<unknown>): Promise<WorkCounts> {
    return this.client.count(work, calls, call);
  }

  async begin(
    cell: string,
    claims: number,
    firstShard = 0,
    names = this.names.fresh(claims, firstShard),
  ): Promise<Lease> {
    const lease = { cell, uuid: randomUUID(), names };
    await this.sendBegin(201, lease);
    return lease;
  }

  async sendBegin(status: number, { cell, uuid, names }: Lease): Promise<void> {
    await this.client.send(
      status,
      "PUT",
      `/v1/cells/${cell}/leases/${uuid}`,
      this.cellKey(cell),
      batchOf(names),
    );
  }

  async decide({ cell, uuid }: Lease, how: "commit" | "rollback"): Promise<void> {
    await this.client.send(200, "POST", `/v1/cells/${cell}/leases/${uuid}/${how}`, this.cellKey(cell));
  }

  /**
   * Begins leases of one claim each, spread over all shards. They run concurrently, so they must not be
   * counted.
   */
  beginMany(cell: string, leases: number): Promise<Lease[]> {
    return fanOut([...Array(leases).keys()], AT_ONCE, (index) => this.begin(cell, 1, index));
  }

  async commitMany(leases: readonly Lease[]): Promise<void> {
    await fanOut(leases, AT_ONCE, (lease) => this.decide(lease, "commit"));
  }

  async cron(): Promise<void> {
    await this.client.send(204, "POST", CRON_PATH);
  }

  /** Runs the alarm of every object that has one set. */
  async alarms(): Promise<void> {
    await this.client.send(204, "POST", ALARMS_PATH);
  }

  /** Advances the clock beyond every retention time, so that all decided leases may be deleted. */
  async advanceClock(): Promise<void> {
    await this.client.send(204, "POST", `${ADVANCE_PATH}?ms=${LONG_MS}`);
  }

  async stopClock(): Promise<void> {
    await this.client.send(204, "POST", STOP_PATH);
  }

  /** Advances the stopped clock, and waits for what the timers do that ring. */
  async pass(ms: number): Promise<void> {
    await this.client.send(204, "POST", `${ADVANCE_PATH}?ms=${ms}`);
  }
}
