import type { Change } from "./api-types.ts";
import { pause } from "./attempt-abort.ts";
import type { Caller } from "./caller.ts";
import type { CallOptions } from "./connection.ts";
import { isLeaseholdError, valueOf } from "./errors.ts";

/** What a page has of one shard: all changes after one point of its history, up to another. */
export interface ChangesRange {
  shard: number;
  after: { incarnation: number; position: number };
  through: { incarnation: number; position: number };
}

/** A page of changes. */
export interface ChangesPage {
  /** Those of each shard are in order. A change can come again on a later page, with the same `id`. */
  changes: readonly Change[];
  /** Save it together with what you made of the changes. Then continue from it with `after`. */
  checkpoint: string;
  /** True: more changes can be read at once. */
  hasMore: boolean;
  /**
   * What was read of each shard, from point to point. If `after` has another incarnation than the `through`
   * of the page before, the shard has gone back in time between the two pages.
   */
  ranges: readonly ChangesRange[];
  /** The shards that could not be read. Their changes follow later. */
  unavailable: readonly number[];
}

export interface ChangesOptions extends CallOptions {
  /** The checkpoint from which to continue. Left out: the page is empty, and has the newest checkpoint. */
  after?: string | undefined;
  /** Only changes that leases of this cell made. A cell gets no others in any case. */
  cell?: string | undefined;
  /** Only claims of names of this type, and no leases. */
  bucketType?: string | undefined;
  pageSize?: number | undefined;
}

export interface FollowOptions extends ChangesOptions {
  /** The pause before the next look, when there was nothing more: 1,000 ms by default. */
  intervalMs?: number | undefined;
}

/** What happens to leases and claims: for cells about their own, for operators about all. */
export class Changes {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Reads a page of changes. Throws `ChangesPrunedError` if a shard no longer has all changes after its
   * position: then read the newest checkpoint, export the records, and continue from that checkpoint.
   */
  async page({ after, cell, bucketType, pageSize, ...call }: ChangesOptions = {}): Promise<ChangesPage> {
    const query = { after, cell, bucket_type: bucketType, page_size: pageSize };
    const answer = valueOf(await this.#caller.call("listChanges", { ...call, query }));
    const { changes, checkpoint, has_more: hasMore, ranges, unavailable } = answer;
    return { changes, checkpoint, hasMore, ranges, unavailable };
  }

  /**
   * Reads page by page, and waits for more. It ends when `signal` aborts, and goes on after an outage of the
   * coordinator. Without `after`, the first page is empty, and has the newest checkpoint. Later pages have
   * changes, a checkpoint that has moved, or other unavailable shards. Throws like `page`.
   *
   * @example
   * ```ts
   * import { createClient } from "leasehold/client";
   *
   * const client = createClient({ url: "https://leasehold.example.com", key: process.env["KEY"] ?? "" });
   * let saved: string | undefined;
   * for await (const { changes, checkpoint } of client.changes.follow({ after: saved })) {
   *   for (const { event, claim } of changes) console.log(event, claim?.bucket?.value);
   *   saved = checkpoint; // In the same transaction as what you made of the changes.
   * }
   * ```
   */
  async *follow({ intervalMs = 1_000, ...options }: FollowOptions = {}): AsyncGenerator<
    ChangesPage,
    void,
    undefined
  > {
    const isAborted = (): boolean => options.signal?.aborted === true;
    let unavailable = "";
    for (let { after } = options; !isAborted();) {
      const page = await this.#pageOrOutage({ ...options, after });
      const isNew = page?.checkpoint !== after || String(page?.unavailable) !== unavailable;
      if (page !== undefined && (page.changes.length > 0 || isNew)) yield page;
      after = page?.checkpoint ?? after;
      unavailable = String(page?.unavailable ?? unavailable);
      if (page?.hasMore !== true) await pause(intervalMs, [options.signal]);
    }
  }

  /** Undefined if the coordinator could not be asked, or if the caller has aborted. */
  async #pageOrOutage(options: ChangesOptions): Promise<ChangesPage | undefined> {
    try {
      return await this.page(options);
    } catch (error) {
      if (options.signal?.aborted === true || (isLeaseholdError(error) && error.retryable)) return undefined;
      throw error;
    }
  }
}
