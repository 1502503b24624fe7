/** Names that change their owners all the time, and readers that ask a router about them. */
import { Random } from "../../../demo/random.ts";
import type { Cell } from "./cell.ts";
import {
  complaintsAboutAge,
  complaintsAboutOrder,
  Owners,
  type Bounds,
  type Interval,
  type Period,
  type Told,
} from "./churn-judge.ts";
import { refusalOf, Requests, type Planned, type Received } from "./requests.ts";
import type { Stage } from "./stage.ts";

export interface RouterSetup {
  name: string;
  variables: Readonly<Record<string, string>>;
  bounds: Bounds;
}

const NAMES = 24;
/** Between changes of a name. An answer that routers wrongly keep shows only in a long pause. */
const PAUSE_MS: readonly [number, number] = [50, 1_500];
const LONG_PAUSE_MS: readonly [number, number] = [3_000, 5_000];
/** Between a begin and its decision. Routers must not keep what they are told meanwhile (Q2). */
const LEASE_MS: readonly [number, number] = [0, 300];

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));

/** Creates, destroys and moves names between the cells. */
export class Churn {
  readonly owners = new Owners();
  readonly names: readonly string[];
  changes = 0;
  readonly #stage: Stage;
  readonly #random: Random;

  constructor(stage: Stage, seed: number) {
    this.#stage = stage;
    this.#random = new Random(seed, "churn");
    this.names = Array.from({ length: NAMES }, (_, n) => `name-${seed}-${n}`);
    // Half of the names are served at any cell, so nothing heals a wrong answer about them.
    for (const cell of stage.cells) for (const name of this.names.slice(NAMES / 2)) cell.believed.add(name);
  }

  /** Changes names until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.names.map((name) => this.#change(name, signal)));
  }

  async #change(name: string, signal: AbortSignal): Promise<void> {
    let owner: Cell | undefined;
    while (!signal.aborted) {
      await sleep(this.#random.between(...(this.#random.chance(0.3) ? LONG_PAUSE_MS : PAUSE_MS)));
      if (signal.aborted) return;
      const [one, two] = this.#stage.cells;
      if (owner === undefined) {
        owner = await this.#create(this.#random.chance(0.5) ? one : two, name);
        continue;
      }
      const isFree = await this.#destroy(owner, name);
      const isMove = this.#random.chance(0.6);
      if (isFree) owner = isMove ? await this.#create(owner === one ? two : one, name) : undefined;
    }
  }

  /** Returns the cell, or undefined if its lease was rolled back. */
  async #create(cell: Cell, name: string): Promise<Cell | undefined> {
    const { leases } = this.#stage.clientOf(cell);
    // A granted lease shows its name (R2).
    const [lease, began] = await timed(() => leases.begin({ creates: [this.#stage.claim(name)] }));
    const period: Period = { cell: cell.id, epoch: undefined, began };
    this.owners.changed(name, period);
    // Nobody else changes the name, so this is the epoch of the lease.
    period.epoch = (await this.#stage.router().routing.find(this.#stage.claim(name).bucket)).epoch;
    this.changes += 1;
    await sleep(this.#random.between(...LEASE_MS));
    if (this.#random.chance(0.2)) {
      this.#free(name, await timed(() => leases.rollback(lease.uuid)));
      return undefined;
    }
    cell.rows.add(name);
    await leases.commit(lease.uuid);
    return cell;
  }

  /** Returns whether the name is free now. */
  async #destroy(cell: Cell, name: string): Promise<boolean> {
    const { leases } = this.#stage.clientOf(cell);
    const { uuid } = await leases.begin({ destroys: [this.#stage.claim(name)] });
    await sleep(this.#random.between(...LEASE_MS));
    if (this.#random.chance(0.2)) {
      await leases.rollback(uuid);
      return false;
    }
    cell.rows.delete(name);
    this.#free(name, await timed(() => leases.commit(uuid)));
    return true;
  }

  #free(name: string, [, began]: readonly [unknown, Interval]): void {
    this.owners.changed(name, { cell: undefined, epoch: undefined, began });
    this.changes += 1;
  }
}

async function timed<Result>(call: () => Promise<Result>): Promise<[Result, Interval]> {
  const fromMs = performance.now();
  const result = await call();
  return [result, { fromMs, toMs: performance.now() }];
}

/** Asks one router about the names, and remembers what it says. */
export class Readers {
  readonly told: Told[] = [];
  readonly complaints: string[] = [];
  /**
   * `healed`: found after a 421. `stale`: found, and marked as from an outage, as after questions without an
   * answer. `later` and `unreachable` say nothing about the name, so they are never wrong.
   */
  readonly counts = { found: 0, free: 0, healed: 0, stale: 0, later: 0, unreachable: 0 };
  readonly #requests: Requests;
  readonly #names: readonly string[];
  readonly #random: Random;

  constructor(router: string, names: readonly string[], seed: number) {
    this.#requests = new Requests(router);
    this.#names = names;
    this.#random = new Random(seed, "readers", router);
  }

  get requests(): Requests {
    return this.#requests;
  }

  async run(perSecond: number, signal: AbortSignal): Promise<void> {
    await this.#requests.pace(perSecond, () => this.#plan(), signal);
    this.#requests.close();
  }

  /** Everything that is wrong with the answers. */
  judge(owners: Owners, bounds: Bounds): string[] {
    const { complaints, told } = this;
    return [...complaints, ...complaintsAboutAge(told, owners, bounds), ...complaintsAboutOrder(told)];
  }

  #plan(): Planned {
    const name = this.#names[this.#random.between(0, this.#names.length - 1)] ?? "";
    const received = (answer: Received): void => this.#received(name, answer);
    return { path: `/${name}`, method: "GET", received };
  }

  #received(name: string, answer: Received): void {
    const { sentMs, receivedMs, status, headers, body } = answer;
    const { counts } = this;
    const refusal = refusalOf(answer);
    if (refusal !== undefined) {
      counts[refusal] += 1;
      return;
    }
    const cell = headers["leasehold-cell"];
    if (status === 404 && body.includes('"NO_CELL"')) {
      counts.free += 1;
      const none = { cell: undefined, epoch: undefined, ageMs: undefined, isStale: false };
      this.told.push({ name, sentMs, receivedMs, ...none });
    } else if (status === 200 && typeof cell === "string" && body === cell) {
      const ageMs = Number(headers["leasehold-age-ms"]);
      counts.found += 1;
      if (headers["leasehold-hops"] === "1") counts.healed += 1;
      const isStale = headers["leasehold-stale"] === "true";
      if (isStale) counts.stale += 1;
      const epoch = Number(headers["leasehold-epoch"]);
      this.told.push({ name, sentMs, receivedMs, cell, epoch, ageMs, isStale });
    } else {
      const times = `at ${Math.round(sentMs)} ms, after ${Math.round(receivedMs - sentMs)} ms`;
      this.complaints.push(`GET /${name} was answered ${status} ${times}: ${body.slice(0, 200)}`);
    }
  }
}
