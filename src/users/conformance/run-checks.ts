/** Runs checks against an implementation, and gives up everything that they have left. */
import { Api, NoAnswerError, Slots, type CellName, type Keys, type WebFetch } from "./api.ts";
import {
  CheckContext,
  LeaseRegistry,
  Random,
  SkipError,
  type Check,
  type Deployment,
  type Need,
} from "./check-context.ts";
import { cleanUp, findLeft, type CleanedUp } from "./clean-up.ts";
import { Nonconformity } from "./nonconformity.ts";

export interface RunOptions {
  url: string;
  fetch: WebFetch;
  keys: Keys;
  deployment: Deployment;
  checks: readonly Check[];
  /** What all names of the run begin with. */
  prefix: string;
  seed: number;
  /** Checks at a time. */
  concurrency: number;
  /** Histories of the linearizability check. */
  histories: number;
  withWire: boolean;
  /** Ends the checks, but not the clean-up. */
  signal: AbortSignal;
  /** The time of one check, or of one history of it. */
  checkMs?: number;
  onResult?: (result: CheckResult) => void;
}

export interface CheckResult {
  id: string;
  rules: readonly string[];
  title: string;
  result: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. Null: it passed. */
  reason: string | null;
  took_ms: number;
}

export interface RunReport {
  results: readonly CheckResult[];
  cleaned: CleanedUp;
  /** What could not be given up, as sentences. */
  left: readonly string[];
}

const CHECK_MS = 60_000;

/** Calls at a time, over all checks. */
const CALLS = 16;

export async function runChecks(options: RunOptions): Promise<RunReport> {
  const run = new Run(options);
  const results = await run.checks();
  return { results, ...(await run.cleanUp()) };
}

const missing: Readonly<Record<Need, string>> = {
  other: "needs a key of another cell",
  router: "needs a key of a router",
  operator: "needs a key of an operator",
  wire: "the protobuf wire is not tested",
};

class Run {
  readonly #options: RunOptions;
  readonly #leases = new LeaseRegistry();
  readonly #calls = new Slots(CALLS);

  constructor(options: RunOptions) {
    this.#options = options;
  }

  async checks(): Promise<CheckResult[]> {
    const { checks, concurrency, onResult } = this.#options;
    const slots = new Slots(concurrency);
    const running = checks.map((check, index) =>
      slots.use(async () => {
        const result = await this.#resultOf(check, index + 1);
        onResult?.(result);
        return result;
      }),
    );
    return Promise.all(running);
  }

  async cleanUp(): Promise<{ cleaned: CleanedUp; left: string[] }> {
    const cleaned: CleanedUp = { rolled_back: 0, released: 0 };
    const left: string[] = [];
    for (const who of ["cell", "other"] as const) {
      if (!this.#api(new AbortController().signal).has(who)) continue;
      try {
        const options = this.#cleaning(who);
        const done = await cleanUp(options);
        cleaned.rolled_back += done.rolled_back;
        cleaned.released += done.released;
        left.push(...(await findLeft(options)));
      } catch (error) {
        left.push(`cell ${this.#cellOf(who)} can't be cleaned up: ${messageOf(error)}`);
      }
    }
    return { cleaned, left };
  }

  #cleaning(who: CellName): Parameters<typeof cleanUp>[0] {
    const { signal } = new AbortController();
    const { prefix, deployment } = this.#options;
    return {
      api: this.#api(signal),
      who,
      cell: this.#cellOf(who),
      types: deployment.types,
      prefix,
      open: this.#leases.openOf(who),
      signal,
    };
  }

  #cellOf(who: CellName): string {
    const { cell, otherCell = "" } = this.#options.deployment;
    return who === "cell" ? cell : otherCell;
  }

  #api(signal: AbortSignal): Api {
    const { url, fetch, keys } = this.#options;
    return new Api({ url, fetch, keys, signal, calls: this.#calls });
  }

  async #resultOf(check: Check, number: number): Promise<CheckResult> {
    const startedMs = performance.now();
    const [result, reason] = await this.#outcomeOf(check, number);
    const { id, rules, title } = check;
    return { id, rules, title, result, reason, took_ms: Math.round(performance.now() - startedMs) };
  }

  async #outcomeOf(check: Check, number: number): Promise<readonly [CheckResult["result"], string | null]> {
    const { signal: interrupt, histories } = this.#options;
    const checkMs = (this.#options.checkMs ?? CHECK_MS) * (check.isPerHistory === true ? histories : 1);
    const need = check.needs?.find((each) => !this.#has(each));
    if (need !== undefined) return ["skipped", missing[need]];
    const timeout = AbortSignal.timeout(checkMs);
    const signal = AbortSignal.any([interrupt, timeout]);
    try {
      signal.throwIfAborted();
      await check.run(this.#contextOf(check, number, signal));
      return ["passed", null];
    } catch (error) {
      if (interrupt.aborted) return ["skipped", "the run was interrupted"];
      if (timeout.aborted) return ["failed", `took more than ${checkMs / 1_000} s`];
      if (error instanceof SkipError) return ["skipped", error.message];
      if (error instanceof Nonconformity || error instanceof NoAnswerError) return ["failed", error.message];
      // An answer that has another form than the check reads.
      return ["failed", `could not be checked: ${messageOf(error)}`];
    }
  }

  #contextOf({ id }: Check, number: number, signal: AbortSignal): CheckContext {
    const { deployment, prefix, seed, histories } = this.#options;
    return new CheckContext({
      api: this.#api(signal),
      deployment,
      leases: this.#leases,
      prefix: `${prefix}${number}-`,
      seed,
      random: new Random(seed, id),
      histories,
      signal,
    });
  }

  #has(need: Need): boolean {
    return need === "wire" ? this.#options.withWire : this.#api(new AbortController().signal).has(need);
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The results of all checks of a rule. */
export interface RuleResult {
  rule: string;
  /** Failed if a check failed, skipped if no check ran. */
  result: CheckResult["result"];
  passed: number;
  failed: number;
  skipped: number;
}

/** The results by rule, in the order of the rules. */
export function byRule(results: readonly CheckResult[]): RuleResult[] {
  const counts = new Map<string, RuleResult>();
  for (const { rules, result } of results) {
    for (const rule of rules) {
      const count = counts.get(rule) ?? { rule, result, passed: 0, failed: 0, skipped: 0 };
      count[result] += 1;
      counts.set(rule, count);
    }
  }
  for (const count of counts.values())
    count.result = count.failed > 0 ? "failed" : count.passed > 0 ? "passed" : "skipped";
  return [...counts.values()].toSorted((a, b) => compareRules(a.rule, b.rule));
}

/** B2 comes before B10, and conventions come last. */
export function compareRules(a: string, b: string): number {
  const [first, second] = [keyOf(a), keyOf(b)];
  return first < second ? -1 : Number(first > second);
}

function keyOf(rule: string): string {
  const [, letter, number = ""] = /^([A-Z])(\d+)$/.exec(rule) ?? [];
  return letter === undefined ? `~${rule}` : `${letter}${number.padStart(3, "0")}`;
}
