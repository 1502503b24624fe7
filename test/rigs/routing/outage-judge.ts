/** Judges the answers of a router whose coordinator is killed and started again. */
import { refusalOf, type Received } from "./requests.ts";

/**
 * What a request is about. No name changes its owner in such a run.
 *
 * - `warm`: a name that the router has found before the first outage
 * - `page`: a page below a warm name. The router has to know that the longer path is no name of its own.
 * - `start`: the start page, which the rules give to the first cell
 * - `unseen`: a name that has an owner, and that nobody asks for before the coordinator is gone
 * - `missing`: a name without an owner that is asked for all the time
 * - `unheard`: a name without an owner that is asked for only once
 */
export const kinds = ["warm", "page", "start", "unseen", "missing", "unheard"] as const;
export type Kind = (typeof kinds)[number];

/** The kinds whose cells the router knows all the time. */
const found = ["warm", "page", "start"] as const;

/** Of the coordinator. `up` and `down`: from the request to its answer. `changing`: all others. */
export const phases = ["up", "down", "changing"] as const;
export type Phase = (typeof phases)[number];

/**
 * `right`: from the owner's cell. `absent`: 404. `later` and `unreachable` are those of `refusalOf`. Every
 * other answer, and none, is wrong.
 */
export const results = ["right", "absent", "later", "unreachable", "wrong"] as const;
export type Result = (typeof results)[number];

export interface Asked {
  kind: Kind;
  /** The cell that owns the name. */
  owner?: string | undefined;
}

/**
 * A cell that is too slow lets the router wait for at least this long. The cells of the rig refuse and close
 * no connections, so faster answers of this kind hardly happen, however slow the machine is.
 */
const SLOW_CELL_MS = 5_000;
/** The largest part of the answers about found names that may say too soon that the cell does not answer. */
const MAX_HASTY = 1 / 4;

/** The coordinator certainly did not answer between `fromMs` and `toMs`. */
export interface Outage {
  /** When it was about to fail. */
  beganMs: number;
  /** Infinity before. */
  fromMs: number;
  /** Infinity while it lasts. */
  toMs: number;
  /** When the router had noticed that the coordinator is back. Infinity before. */
  endedMs: number;
}

export class OutageJudge {
  readonly complaints: string[] = [];
  readonly #counts = new Map<string, number>();
  /** The `unreachable` answers about found names that no slow cell explains, by phase. */
  readonly #hasty: Record<Phase, number> = { up: 0, down: 0, changing: 0 };
  readonly #boundMs: number;

  constructor(boundMs: number) {
    this.#boundMs = boundMs;
  }

  count(phase: Phase, kind: Kind, result: Result): number {
    return this.#counts.get([phase, kind, result].join()) ?? 0;
  }

  /** The answers to requests of a kind, in a phase, without those that a slow machine causes. */
  answers(phase: Phase, kind: Kind): number {
    const telling = results.filter((result) => result !== "unreachable");
    return telling.reduce((sum, result) => sum + this.count(phase, kind, result), 0);
  }

  /**
   * @param outage the one in which the coordinator is down
   */
  judge({ kind, owner }: Asked, answer: Received, phase: Phase, outage: Outage | undefined): void {
    const result = resultOf(answer, owner);
    const key = [phase, kind, result].join();
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    const isHasty = result === "unreachable" && answer.receivedMs - answer.sentMs < SLOW_CELL_MS;
    if (isHasty && (found as readonly Kind[]).includes(kind)) this.#hasty[phase] += 1;
    const sinceOutageMs = outage === undefined ? 0 : answer.sentMs - outage.fromMs;
    if (this.#allowed(kind, phase, sinceOutageMs).includes(result)) return;
    const { method, path, status, headers, body, sentMs, receivedMs } = answer;
    const cell = headers["leasehold-cell"];
    this.complaints.push(
      `${method} ${path} (${kind}, coordinator ${phase}) was answered ${status}` +
        `${cell === undefined ? "" : ` by cell ${String(cell)}`} at ${Math.round(sentMs)} ms, ` +
        `after ${Math.round(receivedMs - sentMs)} ms: ${body.slice(0, 200)}`,
    );
  }

  /** Complains about a router that has answered for the cells of found names. Call it at the end. */
  judgeShares(): void {
    for (const phase of ["up", "down"] as const) {
      const hasty = this.#hasty[phase];
      const right = found.reduce((sum, kind) => sum + this.count(phase, kind, "right"), 0);
      if (hasty > MAX_HASTY * (hasty + right))
        this.complaints.push(
          `coordinator ${phase}: for found names, ${hasty} answers said too soon that the cell does not ` +
            `answer, and only ${right} were right`,
        );
    }
  }

  #allowed(kind: Kind, phase: Phase, sinceOutageMs: number): readonly Result[] {
    const isDown = phase === "down";
    switch (kind) {
      case "warm":
      case "start":
        // Found names and cells stay usable for the grace period, which is longer than a run's outages (Q8).
        return ["right", "unreachable"];
      case "page":
        return ["right", "later", "unreachable"];
      case "unseen":
        return isDown ? ["later"] : ["right", "later", "unreachable"];
      case "missing":
        // A negative answer may be as old as the bound, but an outage doesn't make it live longer (Q7).
        return isDown && sinceOutageMs > this.#boundMs ? ["later"] : ["absent", "later"];
      case "unheard":
        return isDown ? ["later"] : ["absent", "later"];
    }
  }
}

export function resultOf(answer: Received, owner: string | undefined): Result {
  const { status, headers, body } = answer;
  if (status === 200)
    return owner !== undefined && headers["leasehold-cell"] === owner && body === owner ? "right" : "wrong";
  if (status === 404 && body.includes('"NO_CELL"')) return "absent";
  return refusalOf(answer) ?? "wrong";
}
