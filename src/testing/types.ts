import type { Faults } from "./faults.ts";

export interface TestCoordinatorOptions {
  /** Ids of the cells that are registered and have a key from the start. By default "1" and "2". */
  cells?: readonly string[];
  /** How many shards share the names; by default 4. One that is fixed for the coordinator's whole life. */
  shards?: number;
  /** Variables as in wrangler.toml, such as `LEASEHOLD_BATCH_OPS` and the other limits. With `LEASEHOLD_REQUEST_LOG` it logs; else it is silent. */
  variables?: Readonly<Record<string, string>>;
}

/** Keys for the whole life that the coordinator allows: 400 days, unless `LEASEHOLD_KEY_LIFETIME_S` says otherwise. */
export interface TestKeys {
  /** The key of a cell that was given at the start. Throws for others: mint theirs over `POST /v1/admin/keys`. */
  cell(id: string): string;
  readonly operator: string;
  readonly router: string;
}

/** Takes what the global `fetch` takes, and only knows the way to one coordinator. */
export type TestFetch = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** A whole coordinator in this process. */
export interface TestCoordinator {
  /** A made-up origin: only `fetch` reaches it, and it reaches nothing else. */
  readonly url: string;
  /** Give it to whatever calls the coordinator. Needs no `this`. */
  readonly fetch: TestFetch;
  readonly keys: TestKeys;
  readonly faults: Faults;
  /**
   * As if so much time had passed: leases grow older, alarms ring, the sweep asks about old holds, delays end. Comes back when all that is
   * done. After a thousand alarms the rest of the time is skipped. The cron does not run by itself: see `cron`.
   */
  advance(ms: number): Promise<void>;
  /** What a deployment does every minute: copies leases, cells and keys to D1, for the listing of stale leases, and forgets old outcomes. */
  cron(): Promise<void>;
  /** Every object and the Worker lose their memory, and start again from what was stored. Calls that are under way fail or go on, as in a crash. */
  restart(): Promise<void>;
  /** Ends it, and with it all timers; calls that are under way, and all later ones, reject. May be called twice. */
  close(): Promise<void>;
}
