import type { RouterHooks } from "../../../src/users/router/hooks.ts";
import { CachedRoutes, type LookupOptions } from "../../../src/users/router/lookups/cached-routes.ts";
import type { Name } from "../../../src/users/router/lookups/routes.ts";
import type { CellList, ReportPage, Source, SourceAnswer } from "../../../src/users/router/lookups/source.ts";
import type { Positions } from "../../../src/users/router/positions.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

type Report = Awaited<ReturnType<Source["report"]>>;

export const name = (value: string): Name => ({ type: "ROUTES", value });

/** Spellings of one name have the same key, of 16 characters like a real one. */
const keyOf = (value: string): string => value.toLowerCase().slice(0, 16).padEnd(16, "0");

export const addressOf = (cell: string): string => `https://cell-${cell}.example.com`;

/**
 * A coordinator with one shard that a test changes step by step. Each answer is read when the question
 * arrives, and takes `delayMs` to come back.
 */
export class ScriptedSource implements Source {
  readonly clock: VirtualClock;
  /** Every question, such as `find a`, `report 0 after 7`, `cells`. */
  readonly asked: string[] = [];
  readonly owners = new Map<string, { cell: string; epoch: number }>();
  readonly held = new Set<string>();
  readonly addresses = new Map<string, string>();
  log: [position: number, keys: string[]][] = [];
  position = 100;
  /** The log has no rows up to this position. */
  prunedThrough = 0;
  delayMs = 0;
  /** The most rows of a report's page. */
  pageRows = 256;
  answerAgeMs = 0;
  reportAgeMs = 0;
  /** The age of the coordinator's own copy of the cells. */
  directoryAgeMs = 0;
  isDown = false;
  isSilent = false;
  /** Answers the next questions instead of the state above. */
  readonly next: SourceAnswer[] = [];
  readonly nextReports: Report[] = [];

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  /** Gives a name to a cell in one go. */
  claim(value: string, cell: string): void {
    this.hold(value);
    this.owners.set(keyOf(value), { cell, epoch: this.position });
    this.release(value);
  }

  drop(value: string): void {
    this.hold(value);
    this.owners.delete(keyOf(value));
    this.release(value);
  }

  /** Takes the next position, as a shard's transaction does. */
  hold(value: string): void {
    this.position += 1;
    this.log.push([this.position, [keyOf(value)]]);
    this.held.add(keyOf(value));
  }

  release(value: string): void {
    this.position += 1;
    this.held.delete(keyOf(value));
  }

  /** How many questions begin with the text. */
  count(start: string): number {
    return this.asked.filter((each) => each.startsWith(start)).length;
  }

  find({ value }: Name, min: Positions): Promise<SourceAnswer> {
    this.asked.push(min.size === 0 ? `find ${value}` : `find ${value} ${[...min].join(";")}`);
    return this.#later(() => this.#answer(value, min));
  }

  findMany(names: readonly Name[], min: Positions): Promise<readonly SourceAnswer[]> {
    this.asked.push(`findMany ${names.map(({ value }) => value).join(" ")}`);
    return this.#later(() => names.map(({ value }) => this.#answer(value, min)));
  }

  report(shard: number, after: number | undefined): Promise<Report> {
    this.asked.push(`report ${shard}${after === undefined ? "" : ` after ${after}`}`);
    return this.#later((): Report => {
      const scripted = this.nextReports.shift();
      if (scripted !== undefined) return scripted;
      if (this.isDown) return { kind: "failed", detail: "down" };
      return this.#page(shard, after);
    });
  }

  cells(): Promise<CellList | { kind: "failed"; detail: string }> {
    this.asked.push("cells");
    return this.#later(() => {
      if (this.isDown) return { kind: "failed", detail: "down" };
      const ids = new Set([...this.owners.values()].map(({ cell }) => cell));
      const cells = [...ids].map((id) => ({ id, address: this.#addressOf(id) }));
      return { kind: "cells", cells, ageMs: this.answerAgeMs, copyAgeMs: this.directoryAgeMs };
    });
  }

  close(): void {
    this.asked.push("close");
  }

  #addressOf(cell: string): string {
    return this.addresses.get(cell) ?? addressOf(cell);
  }

  #answer(value: string, min: Positions): SourceAnswer {
    const scripted = this.next.shift();
    if (scripted !== undefined) return scripted;
    if (this.isDown) return { kind: "failed", detail: "down" };
    if (this.position < (min.get(0) ?? 0))
      return { kind: "failed", detail: "behind", status: 503, isBehind: true };
    const key = keyOf(value);
    const { position, answerAgeMs: ageMs } = this;
    const read = { key, shard: 0, position, settled: !this.held.has(key), ageMs };
    const owner = this.owners.get(key);
    if (owner === undefined) return { kind: "none", ...read };
    const { cell, epoch } = owner;
    return { kind: "found", cell: { id: cell, address: this.#addressOf(cell) }, epoch, ...read };
  }

  #page(shard: number, after: number | undefined): Report {
    const from = after ?? this.position;
    if (from > this.position) return { kind: "failed", detail: "behind", status: 503 };
    if (from < this.prunedThrough) return { kind: "pruned" };
    const rows = this.log.filter(([position]) => position > from);
    const page = rows.slice(0, this.pageRows);
    const hasMore = rows.length >= this.pageRows;
    const through = hasMore ? (page.at(-1)?.[0] ?? from) : this.position;
    const ageMs = this.reportAgeMs;
    return { kind: "page", shard, after: from, through, held: page, hasMore, ageMs } satisfies ReportPage;
  }

  /** Reads at once, and answers later. */
  #later<Answer>(read: () => Answer): Promise<Answer> {
    if (this.isSilent) return new Promise(() => {});
    const answer = read();
    if (this.delayMs === 0) return Promise.resolve(answer);
    return new Promise((resolve) => {
      this.clock.after(this.delayMs, () => resolve(answer));
    });
  }
}

export interface World {
  clock: VirtualClock;
  source: ScriptedSource;
  routes: CachedRoutes;
}

/** A router over a scripted coordinator, with the default options of `createRoutes`. */
export function world(options: Partial<LookupOptions> = {}, hooks: RouterHooks = {}): World {
  const clock = new VirtualClock();
  const source = new ScriptedSource(clock);
  return { clock, source, routes: routerOf(source, options, hooks) };
}

/** Another router over the same coordinator. */
export function routerOf(
  source: ScriptedSource,
  options: Partial<LookupOptions> = {},
  hooks: RouterHooks = {},
): CachedRoutes {
  return new CachedRoutes({
    source,
    clock: source.clock,
    maxAgeMs: 5_000,
    reports: true,
    reportedMaxAgeMs: 300_000,
    boundMs: 2_000,
    negativeMaxAgeMs: 1_000,
    graceMs: 600_000,
    memoryBytes: 2 ** 20,
    timeoutMs: 2_000,
    hooks,
    ...options,
  });
}
