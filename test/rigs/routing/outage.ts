/** Kills or freezes the coordinator while a router gets requests at a fixed pace. */
import { Random } from "../../../demo/random.ts";
import {
  kinds,
  OutageJudge,
  resultOf,
  type Kind,
  type Outage,
  type Phase,
  type Result,
} from "./outage-judge.ts";
import { Requests, type Planned, type Received } from "./requests.ts";
import type { Stage } from "./stage.ts";

/** `kill`: as by `kill -9`. `freeze`: connections open, but nobody answers them. */
export const failures = ["kill", "freeze"] as const;
export type Failure = (typeof failures)[number];

export interface OutageOptions {
  stage: Stage;
  router: string;
  failures: readonly Failure[];
  rounds: number;
  perSecond: number;
  seed: number;
  log: (line: string) => void;
}

/** The router's bound with reports. */
const BOUND_MS = 2_000;
const WARM = 100;
const UNSEEN = 60;
const MISSING = 50;
/** Each phase lasts until there are so many answers to each kind of request, however slow the machine is. */
const LEAST_ANSWERS = 5;
/** The pace in each phase is shown for at least this long. */
const PHASE_MS = 1_000;
/** A name that the router has not found this long after an outage is not found at all. */
const PATIENCE_MS = 300_000;

/** How many of 20 requests are of each kind. */
const shares: Readonly<Record<Kind, number>> = {
  warm: 9,
  page: 2,
  start: 1,
  unseen: 4,
  missing: 2,
  unheard: 2,
};
const drawn = kinds.flatMap((kind) => Array.from({ length: shares[kind] }, () => kind));

const sleep = (ms: number): Promise<void> => new Promise((resume) => setTimeout(resume, ms));
const numbered = (word: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${word}-${n}`);

export class OutageRun {
  readonly judge = new OutageJudge(BOUND_MS);
  readonly outages: Outage[] = [];
  readonly #options: OutageOptions;
  readonly #random: Random;
  readonly #requests: Requests;
  readonly #owners = new Map<string, string>();
  readonly #warm: readonly string[];
  readonly #missing: readonly string[];
  /** The names of the round that are asked for only once the coordinator is gone. */
  #unseen: readonly string[] = [];
  #unheard = 0;

  constructor(options: OutageOptions) {
    const { seed } = options;
    this.#options = options;
    this.#random = new Random(seed, "outage");
    this.#requests = new Requests(options.router);
    this.#warm = numbered(`warm-${seed}`, WARM);
    this.#missing = numbered(`missing-${seed}`, MISSING);
  }

  get requests(): Requests {
    return this.#requests;
  }

  async run(): Promise<void> {
    const { rounds, failures: chosen, perSecond, log, seed } = this.#options;
    await this.#give(this.#warm);
    await this.#find([...this.#warm, ""], "right");
    const end = new AbortController();
    const load = this.#requests.pace(perSecond, () => this.#plan(), end.signal);
    try {
      for (let round = 0; round < rounds; round += 1) {
        const failure = chosen[round % chosen.length] ?? "kill";
        const unseen = numbered(`unseen-${seed}-${round}`, UNSEEN);
        await this.#give(unseen);
        await this.#phase("up");
        await this.#outage(failure, unseen);
        await this.#phase("up");
        log(`round ${round + 1} (${failure}): ${this.judge.complaints.length} complaints so far`);
      }
    } finally {
      end.abort();
      await load;
      this.#requests.close();
    }
    this.#checkCells();
    this.judge.judgeShares();
  }

  /** Names go to both cells in turn. */
  async #give(names: readonly string[]): Promise<void> {
    const { cells } = this.#options.stage;
    for (const [place, cell] of cells.entries()) {
      const own = names.filter((_, n) => n % cells.length === place);
      await this.#options.stage.give(cell, own);
      for (const name of own) this.#owners.set(name, cell.id);
    }
  }

  async #outage(failure: Failure, unseen: readonly string[]): Promise<void> {
    const { stage } = this.#options;
    const { server } = stage;
    const outage: Outage = {
      beganMs: performance.now(),
      fromMs: Infinity,
      toMs: Infinity,
      endedMs: Infinity,
    };
    this.outages.push(outage);
    if (failure === "kill") await server.kill("group");
    else process.kill(-server.pid, "SIGSTOP");
    outage.fromMs = performance.now();
    this.#unseen = unseen;
    await sleep(BOUND_MS);
    await this.#phase("down");
    outage.toMs = performance.now();
    if (failure === "kill") await stage.startCoordinator();
    else process.kill(-server.pid, "SIGCONT");
    await this.#find([...this.#warm, ...unseen, ""], "right");
    await this.#find(this.#missing, "absent");
    outage.endedMs = performance.now();
  }

  /** Waits until each kind of request has had answers in a phase that has just begun. */
  async #phase(phase: Phase): Promise<void> {
    const before = kinds.map((kind) => this.judge.answers(phase, kind));
    await sleep(PHASE_MS);
    // Nobody asks for unseen names before the first outage.
    const needed = kinds.filter((kind) => kind !== "unseen" || this.#unseen.length > 0);
    while (
      needed.some(
        (kind) => this.judge.answers(phase, kind) < (before[kinds.indexOf(kind)] ?? 0) + LEAST_ANSWERS,
      )
    )
      await sleep(50);
  }

  /** Asks for names until each of them has its right answer. */
  async #find(names: readonly string[], expected: Result): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS;
    for (const name of names) {
      for (;;) {
        const answer = await this.#requests.send({ path: `/${name}`, method: "GET" });
        const result = resultOf(answer, this.#ownerOf(name));
        if (result === expected) break;
        const isRefused = result === "later" || result === "unreachable";
        if (!isRefused || performance.now() > deadlineMs) {
          const { status, body } = answer;
          this.judge.complaints.push(
            `GET /${name} was answered ${status}, not ${expected}: ${body.slice(0, 200)}`,
          );
          break;
        }
        await sleep(50);
      }
    }
  }

  #plan(): Planned {
    const drawnKind = this.#pick(drawn);
    const kind = drawnKind === "unseen" && this.#unseen.length === 0 ? "warm" : drawnKind;
    const { name, path } = this.#target(kind);
    const asked = { kind, owner: this.#ownerOf(name) };
    const received = (answer: Received): void => {
      const { phase, outage } = this.#phaseOf(answer);
      this.judge.judge(asked, answer, phase, outage);
    };
    return { path, method: this.#random.chance(0.1) ? "POST" : "GET", received };
  }

  /** The rules give the start page to the first cell. */
  #ownerOf(name: string): string | undefined {
    return name === "" ? this.#options.stage.cells[0].id : this.#owners.get(name);
  }

  #target(kind: Kind): { name: string; path: string } {
    const target = (name: string, page = ""): { name: string; path: string } => ({
      name,
      path: `/${name}${page}`,
    });
    switch (kind) {
      case "warm":
        return target(this.#pick(this.#warm));
      case "page":
        return target(this.#pick(this.#warm), "/page");
      case "start":
        return target("");
      case "unseen":
        return target(this.#pick(this.#unseen));
      case "missing":
        return target(this.#pick(this.#missing));
      case "unheard":
        return target(`unheard-${this.#options.seed}-${(this.#unheard += 1)}`);
    }
  }

  #pick<Item>(items: readonly Item[]): Item {
    const item = items[this.#random.between(0, items.length - 1)];
    if (item === undefined) throw new Error("there is nothing to choose from");
    return item;
  }

  #phaseOf({ sentMs, receivedMs }: Received): { phase: Phase; outage?: Outage } {
    const during = this.outages.find(({ fromMs, toMs }) => fromMs <= sentMs && receivedMs <= toMs);
    if (during !== undefined) return { phase: "down", outage: during };
    const last = this.outages.findLast(({ beganMs }) => beganMs <= receivedMs);
    return { phase: last === undefined || sentMs > last.endedMs ? "up" : "changing" };
  }

  /** No name moves, so no request may reach a cell that doesn't have it. */
  #checkCells(): void {
    for (const { id, refused } of this.#options.stage.cells)
      if (refused > 0)
        this.judge.complaints.push(`cell ${id} got ${refused} requests about names that it doesn't have`);
  }
}
