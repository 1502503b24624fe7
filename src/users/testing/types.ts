import type { TypesDocument } from "../../common/types/document.ts";
import type { Faults } from "./faults.ts";

export interface TestCoordinatorOptions {
  /** The ids of the cells that are registered and have a key from the start: "1" and "2" by default. */
  cells?: readonly string[];
  /** The number of shards at the start: 4 by default. */
  shards?: number;
  /**
   * The contents of `leasehold.types.json`, if the application declares its own types. Left out: the types
   * that Leasehold ships.
   */
  types?: TypesDocument;
  /**
   * Variables as in wrangler.toml, such as `LEASEHOLD_BATCH_OPS` and the other limits. The coordinator logs
   * only with `LEASEHOLD_REQUEST_LOG`.
   */
  variables?: Readonly<Record<string, string>>;
}

/**
 * Keys with the longest lifetime that the coordinator allows: 400 days, unless `LEASEHOLD_KEY_LIFETIME_S`
 * differs.
 */
export interface TestKeys {
  /**
   * Returns the key of a cell that was given at the start. Throws for other cells: make their keys with `POST
   * /v1/admin/keys`.
   */
  cell(id: string): string;
  readonly operator: string;
  readonly router: string;
}

/** Has the parameters of the global `fetch`, but reaches only one coordinator. */
export type TestFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** A complete coordinator in this process. */
export interface TestCoordinator {
  /** An invented origin. Only this coordinator's `fetch` reaches it. */
  readonly url: string;
  /** Give it to every client of the coordinator. It works without `this`. */
  readonly fetch: TestFetch;
  readonly keys: TestKeys;
  readonly faults: Faults;
  /**
   * Lets time pass: leases age, alarms run, the sweep inquires about old holds, and delays end. Resolves when
   * all of that is done. After 1,000 timers it skips the rest of the time. It does not run the cron: call
   * `cron`.
   */
  advance(ms: number): Promise<void>;
  /**
   * Runs the cron, which a deployment runs every minute. It copies leases, cells and keys to D1, and deletes
   * old outcomes.
   */
  cron(): Promise<void>;
  /**
   * Restarts every object and the Worker from what they stored. As in a crash, calls under way fail or go on.
   */
  restart(): Promise<void>;
  /**
   * Stops the coordinator and its timers. Calls under way, and all later ones, reject. You may call it twice.
   */
  close(): Promise<void>;
}
