import { Cycles, CONTESTED, HELD, Lookups } from "../client/cycles.ts";
import { closedLoop, type Loaded } from "../client/closed-loop.ts";
import { Names } from "../client/names.ts";
import type { Part } from "../options.ts";
import { isCeiling, Peer, programOf, type PeerName } from "../peers.ts";
import type { Result, Results } from "../results.ts";

const WARM_UP_CLIENTS = 32;

export interface BenchScale {
  rounds: number;
  /** The duration of one measurement. */
  seconds: number;
  /** The duration of one measurement for a performance target. */
  targetSeconds: number;
  loadSeconds: number;
  /** The duration of one step of the growing load. */
  kneeSeconds: number;
}

/** The running peers, the names that they were filled with, and the results. */
export class Bench {
  readonly names: readonly PeerName[];
  readonly scale: BenchScale;
  readonly results: Results;
  readonly #commit: string;
  readonly #root: string;
  readonly #peers = new Map<string, Peer>();
  readonly #fresh = new Map<PeerName, Names>();
  readonly print: (line: string) => void;

  constructor(
    names: readonly PeerName[],
    scale: BenchScale,
    results: Results,
    commit: string,
    root: string,
    print: (line: string) => void,
  ) {
    this.names = names;
    this.scale = scale;
    this.results = results;
    this.#commit = commit;
    this.#root = root;
    this.print = print;
  }

  /**
   * Starts all peers, fills them, and warms them up. They keep running; each measurement uses one of them
   * while the others are idle.
   */
  async start(): Promise<void> {
    for (const name of this.names) {
      const program = programOf(name);
      if (!this.#peers.has(program)) this.#peers.set(program, await Peer.start(program, this.#root));
      this.#fresh.set(name, new Names(`${process.pid}x`));
      if (!isCeiling(name)) await this.#fill(name);
      await this.#warmUp(name);
      this.print(`${name} is ready`);
    }
  }

  async #fill(name: PeerName): Promise<void> {
    const cycles = this.cycles(name, 1, 1);
    for (const contested of CONTESTED) expect(await cycles.cycle("1", [contested]), 200, `${name}: a commit`);
    for (const held of HELD) expect(await cycles.begin("1", [held]), 201, `${name}: a begin`);
    cycles.close();
  }

  /** Otherwise the first round would measure code that is not compiled yet. */
  async #warmUp(name: PeerName): Promise<void> {
    const cycles = this.cycles(name, WARM_UP_CLIENTS, 1);
    const { seconds } = this.scale;
    await closedLoop({ clients: WARM_UP_CLIENTS, seconds, turn: (client) => cycles.turn(client) });
    cycles.close();
  }

  peer(name: PeerName): Peer {
    const peer = this.#peers.get(programOf(name));
    if (peer === undefined) throw new Error(`${name} was not started`);
    return peer;
  }

  cycles(name: PeerName, clients: number, claims: number): Cycles {
    return new Cycles(
      this.peer(name).serving(name),
      clients,
      claims,
      this.#freshNames(name),
      isCeiling(name),
    );
  }

  lookups(name: PeerName, clients: number): Lookups {
    return new Lookups(this.peer(name).serving(name), clients, isCeiling(name));
  }

  #freshNames(name: PeerName): Names {
    const names = this.#fresh.get(name);
    if (names === undefined) throw new Error(`${name} was not started`);
    return names;
  }

  /**
   * Measures every peer once per round. Each round starts with another peer, so that other load on the
   * machine affects all of them.
   */
  async rounds(
    part: Part,
    what: string,
    clients: number,
    measure: (peer: PeerName) => Promise<Loaded>,
  ): Promise<void> {
    for (let round = 0; round < this.scale.rounds; round += 1) {
      const turned = this.names.map(
        (_, index) => this.names[(index + round) % this.names.length] ?? "leasehold",
      );
      for (const peer of turned) {
        const key = { part, peer, what, clients, round };
        if (this.results.has(key)) continue;
        const before = this.peer(peer).cpuSeconds();
        const { turns, errors, seconds, latencies } = await measure(peer);
        const cpuMs = (this.peer(peer).cpuSeconds() - before) * 1_000;
        this.add({
          ...key,
          turns,
          errors,
          seconds,
          p50Ms: latencies.percentile(0.5),
          p99Ms: latencies.percentile(0.99),
          cpuMs,
        });
        const rate = `${(turns / seconds).toFixed(0)}/s${errors > 0 ? `, ${errors} ERRORS` : ""}`;
        this.print(`${what}, ${clients} clients, round ${round + 1}: ${peer} ${rate}`);
      }
    }
  }

  add(result: Omit<Result, "commit">): void {
    this.results.add({ commit: this.#commit, ...result });
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#peers.values()].map((peer) => peer.stop()));
  }
}

function expect(status: number, wanted: number, what: string): void {
  if (status !== wanted) throw new Error(`${what} was answered ${status} instead of ${wanted}`);
}
