import { ask } from "../../../src/coordinator/kernel/ask.ts";
import { keyHash } from "../../../src/coordinator/kernel/key-hash.ts";
import type { LookupAnswer, LookupFound } from "../../../src/coordinator/kernel/messages.ts";
import type { Report } from "../../../src/coordinator/capabilities/reports/messages.ts";
import { shardOf } from "../../../src/coordinator/kernel/placement.ts";
import type { Answer } from "../../../src/coordinator/kernel/ports.ts";
import { CachedRoutes } from "../../../src/users/router/lookups/cached-routes.ts";
import type { SharedCache, SharedHit } from "../../../src/users/router/lookups/shared-cache.ts";
import type {
  CellList,
  ReportPage,
  Source,
  SourceAnswer,
  SourceFailure,
} from "../../../src/users/router/lookups/source.ts";
import type { Name as RouteName, Positions, RouteAnswer } from "../../../src/users/router/index.ts";
import type { Coordinator } from "./coordinator.ts";
import type { Faults } from "./faults.ts";
import type { Isolate } from "./isolate.ts";
import type { OwnWrite, Routed } from "./judge/route-watch.ts";
import type { Judge } from "./judge/judge.ts";
import { bucketTypeName, type Name } from "./local.ts";
import type { Owner, Scheduler } from "./scheduler.ts";
import type { RouterSettings } from "./simulation-settings.ts";

/** What the routers of a simulation share. */
export interface RouterContext {
  scheduler: Scheduler;
  faults: Faults;
  coordinator: Coordinator;
  isolate: Isolate;
  judge: Judge;
  settings: RouterSettings;
  names: readonly Name[];
  cache: SimulatedCache;
  /** The newest pages of reports in an HTTP cache that the routers share. */
  tails: Map<string, { page: ReportPage; sentMs: number }>;
}

/** What a router is asked. */
export interface Question {
  name: Name;
  /** In upper case, which is another spelling of the same name. */
  isUpperCase: boolean;
  own?: OwnWrite | undefined;
}

/** The mean time in which the shared cache answers. */
const CACHE_MS = 2;
/** How long an HTTP cache in front of the coordinator keeps the newest page of a report. */
const TAIL_MAX_AGE_MS = 1_000;
const UNAVAILABLE = 503;

/** A router: the production lookups, over messages of the simulation. It forgets everything in a restart. */
export class SimulatedRouter {
  readonly #number: number;
  readonly #context: RouterContext;
  /** By the spelling of a name, until when answers about it are on their way. */
  readonly #late = new Map<string, Promise<void>>();
  #starts = 0;
  #owner: Owner = { name: "router", dead: false };
  #routes: CachedRoutes;
  #skewMs = 0;
  #setBacks = 0;

  constructor(number: number, context: RouterContext) {
    this.#number = number;
    this.#context = context;
    this.#routes = this.#start();
  }

  /** Its name in messages. */
  get address(): string {
    return `router ${this.#number}`;
  }

  get name(): string {
    return `router ${this.#number}, start ${this.#starts}`;
  }

  restart(): void {
    this.#owner.dead = true;
    this.#late.clear();
    this.#routes = this.#start();
  }

  /** Sets the clock forward or back. A router notices a clock that was set back at its next lookup. */
  setClock(byMs: number): void {
    this.#skewMs += byMs;
    if (byMs < 0) this.#setBacks += 1;
  }

  async find({ name, isUpperCase, own }: Question): Promise<RouteAnswer> {
    const ended = this.#began();
    const asked = spelled(name, isUpperCase);
    const answer = await this.#routes.find(asked, { minPositions: own?.positions });
    ended({ name, spelling: asked.value, answer, own });
    return answer;
  }

  /** As `find`, but the answer to a question that this needs arrives only when `until` has resolved. */
  async findLate(question: Question, until: Promise<void>): Promise<RouteAnswer> {
    const { value } = spelled(question.name, question.isUpperCase);
    this.#late.set(value, until);
    try {
      return await this.find(question);
    } finally {
      if (this.#late.get(value) === until) this.#late.delete(value);
    }
  }

  async findMany(names: readonly Name[]): Promise<void> {
    const ended = this.#began();
    const answers = await this.#routes.findMany(names.map((name) => spelled(name, false)));
    for (const [index, name] of names.entries()) {
      const answer = answers[index];
      if (answer === undefined) throw new Error("the router answers fewer names than it was asked for");
      ended({ name, spelling: name.canonical, answer });
    }
  }

  /** Asks again after a cell has said that it does not have the name. */
  async refresh(name: Name, wrong: { shard: number; position: number }): Promise<RouteAnswer> {
    const ended = this.#began();
    const answer = await this.#routes.refresh(spelled(name, false), wrong);
    ended({ name, spelling: name.canonical, answer });
    return answer;
  }

  /** Must be called when a call begins. Returns what is told to the judge when it ends. */
  #began(): (asked: Pick<Routed, "name" | "spelling" | "answer" | "own">) => void {
    const { scheduler, judge } = this.#context;
    const router = this.name;
    const startedMs = scheduler.nowMs;
    const setBacks = this.#setBacks;
    return (asked) => judge.routed({ router, startedMs, isAgeKnown: this.#setBacks === setBacks, ...asked });
  }

  #start(): CachedRoutes {
    const { scheduler, settings, cache, judge } = this.#context;
    this.#starts += 1;
    const owner: Owner = { name: this.address, dead: false };
    this.#owner = owner;
    const { count: _, ...options } = settings;
    return new CachedRoutes({
      source: new SimulatedSource(this.#context, owner, this.#late),
      clock: {
        now: () => scheduler.nowMs + this.#skewMs,
        after: (delayMs, ring) => scheduler.after(delayMs, owner, ring),
      },
      ...options,
      drawSalt: () => this.#number,
      sharedCache: settings.sharedCache
        ? { cache: cache.of(owner), coordinator: "https://leasehold.example" }
        : undefined,
      hooks: {
        onReport: ({ keys }) => {
          judge.see("Q3");
          if (keys > 0) judge.see("Q1");
        },
        onBackwards: () => judge.see("Q6"),
        onFailure: ({ operation }) => judge.see(`a router failed: ${operation}`),
      },
    });
  }
}

const spelled = (name: Name, isUpperCase: boolean): RouteName => ({
  type: bucketTypeName(name.type),
  value: isUpperCase ? name.canonical.toUpperCase() : name.canonical,
});

/** The coordinator as a router sees it: messages to shards, without the HTTP layer. */
class SimulatedSource implements Source {
  readonly #context: RouterContext;
  readonly #owner: Owner;
  readonly #late: ReadonlyMap<string, Promise<void>>;

  constructor(context: RouterContext, owner: Owner, late: ReadonlyMap<string, Promise<void>>) {
    this.#context = context;
    this.#owner = owner;
    this.#late = late;
  }

  async find(name: RouteName, minPositions: Positions): Promise<SourceAnswer> {
    const [answer] = await this.findMany([name], minPositions);
    return answer ?? { kind: "failed", detail: "there is no answer" };
  }

  async findMany(names: readonly RouteName[], minPositions: Positions): Promise<readonly SourceAnswer[]> {
    const { isolate, names: known } = this.#context;
    const { shards } = isolate;
    const asked = names.map(({ type, value }) => {
      const name = known.find(
        (each) => bucketTypeName(each.type) === type && each.canonical === value.toLowerCase(),
      );
      if (name === undefined) throw new Error(`${type} ${value} is no name of the simulation`);
      return { name, value, shard: shardOf(name.type, name.canonical, shards) };
    });
    const answers = new Map<Name, SourceAnswer>();
    await Promise.all(
      [...Map.groupBy(asked, ({ shard }) => shard)].map(async ([shard, each]) => {
        const keys = [...new Set(each.map(({ name }) => name))];
        const late = Promise.all(each.map(({ value }) => this.#late.get(value)));
        const answer = await this.#ask<LookupAnswer>(shard, "lookup", { keys }, late);
        for (const [index, key] of keys.entries())
          answers.set(key, routeOf(key, shard, index, answer, minPositions));
      }),
    );
    const isPart = [...answers.values()].some(({ kind }) => kind !== "failed");
    return asked.map(({ name, shard }) => {
      const answer = answers.get(name) ?? { kind: "failed", detail: "there is no answer" };
      // If all names are unavailable, the call fails as a whole, and names no shard.
      return answer.kind === "failed" && isPart ? { ...answer, shard } : answer;
    });
  }

  async report(shard: number, after: number | undefined): ReturnType<Source["report"]> {
    const { scheduler, faults, tails } = this.#context;
    const cached = tails.get(`${shard} ${after}`);
    const ageMs = cached === undefined ? Infinity : scheduler.nowMs - cached.sentMs;
    if (cached !== undefined && ageMs <= TAIL_MAX_AGE_MS && faults.stream("report cache").chance(0.8))
      return { ...cached.page, ageMs };
    const sentMs = scheduler.nowMs;
    const answer = await this.#ask<Report>(shard, "report", { after: after ?? null });
    if (answer.kind === "refused" && answer.refusal.reason === "REPORT_PRUNED") {
      this.#context.judge.see("a report was pruned");
      return { kind: "pruned" };
    }
    if (answer.kind !== "ok") return failureOf(answer);
    const { held, ...rest } = answer.value;
    const page: ReportPage = {
      ...rest,
      kind: "page",
      shard,
      held: held.map(({ position, keys }) => [position, keys]),
      ageMs: 0,
    };
    if (page.hasMore) this.#context.judge.see("a page of a report is full");
    tails.set(`${shard} ${after}`, { page, sentMs });
    return page;
  }

  async cells(): Promise<CellList> {
    const cells = [...this.#context.coordinator.ledgers.keys()].map(cellOf);
    return { kind: "cells", cells, ageMs: 0, copyAgeMs: 0 };
  }

  close(): void {}

  #ask<T>(shard: number, method: string, fields: object, late?: Promise<unknown>): Promise<Answer<T>> {
    const { scheduler, coordinator, isolate, settings } = this.#context;
    const clock = {
      after: (delayMs: number, then: () => void) => scheduler.after(delayMs, this.#owner, then),
    };
    const message = { ...coordinator.envelope, placement: isolate.placement, ...fields };
    return ask(clock, settings.timeoutMs, async () => {
      const reply = await isolate.send<T>(this.#owner, coordinator.shard(shard), method, message);
      await late;
      return reply;
    });
  }
}

const cellOf = (id: string): { id: string; address: string } => ({
  id,
  address: `https://cell-${id}.example.com`,
});

function failureOf(answer: Exclude<Answer<unknown>, { kind: "ok" }>): SourceFailure {
  const detail = answer.kind === "refused" ? answer.refusal.detail : answer.cause;
  return { kind: "failed", detail, status: UNAVAILABLE };
}

/** What the route call answers about one key. */
function routeOf(
  key: Name,
  shard: number,
  index: number,
  answer: Answer<LookupAnswer>,
  minPositions: Positions,
): SourceAnswer {
  if (answer.kind !== "ok") return failureOf(answer);
  const { position, settled } = answer.value;
  if (position < (minPositions.get(shard) ?? 0))
    return { kind: "failed", detail: "the shard has not reached this position", status: UNAVAILABLE };
  const found: LookupFound | undefined = answer.value.found[index];
  const read = { key: keyHash(key), shard, position, settled: settled[index] ?? false, ageMs: 0 };
  switch (found?.kind) {
    case "record":
      return { kind: "found", ...read, cell: cellOf(found.record.cell), epoch: found.record.epoch };
    case "none":
      return { kind: "none", ...read };
    default:
      return { kind: "failed", detail: "a ledger did not answer", status: UNAVAILABLE };
  }
}

/**
 * A cache between routers. It is slow, hangs, fails, loses values, and sometimes has an older value than the
 * newest one, with the right age.
 */
export class SimulatedCache {
  readonly #scheduler: Scheduler;
  readonly #faults: Faults;
  readonly #values = new Map<string, { value: string; storedMs: number; ttlMs: number }[]>();

  constructor(scheduler: Scheduler, faults: Faults) {
    this.#scheduler = scheduler;
    this.#faults = faults;
  }

  /** The cache as the process of one router sees it. */
  of(owner: Owner): SharedCache {
    return {
      get: async (key) => {
        await this.#pass(owner);
        return this.#get(key);
      },
      put: async (key, value, ttlMs) => {
        // The age of a value counts from the call.
        const storedMs = this.#scheduler.nowMs;
        await this.#pass(owner);
        const stored = this.#values.get(key) ?? [];
        this.#values.set(key, [...stored.slice(-1), { value, storedMs, ttlMs }]);
      },
    };
  }

  #get(key: string): SharedHit | undefined {
    const random = this.#faults.stream("shared cache");
    const stored = this.#values.get(key) ?? [];
    const hit = !this.#faults.areOff && random.chance(0.15) ? stored[0] : stored.at(-1);
    const ageMs = hit === undefined ? Infinity : this.#scheduler.nowMs - hit.storedMs;
    return hit === undefined || ageMs > hit.ttlMs ? undefined : { value: hit.value, ageMs };
  }

  async #pass(owner: Owner): Promise<void> {
    const random = this.#faults.stream("shared cache");
    const isFaulty = !this.#faults.areOff;
    if (isFaulty && random.chance(0.02)) throw new Error("the cache failed");
    const delayMs = isFaulty && random.chance(0.03) ? 1_000 : random.exponential(CACHE_MS);
    await this.#scheduler.sleep(delayMs, owner);
  }
}
