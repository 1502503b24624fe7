import { v7 as uuidv7 } from "uuid";
import type { Client } from "../../client/client.ts";
import { pause } from "../../client/attempt-abort.ts";
import { isLeaseholdError } from "../../client/errors.ts";
import type { Batch, Bucket, ClaimRecord } from "../../client/api-types.ts";
import { idFault } from "../../../common/ids.ts";
import type { Types } from "../../../common/types/types.ts";
import { canonicalOf } from "../declared-types.ts";
import { defaultLimits, limitNames, apiLimitName, type Limits } from "../../../common/limits.ts";
import type { Attribute, Claimable, RowClaim } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { LeasedTransaction, type LeasedTransactionPorts, type LeaseEvent } from "../leased-transaction.ts";
import type { CellDatabase } from "../local.ts";
import {
  releaseKey,
  rowKey,
  type InspectedRow,
  type LockedRows,
  type RepairResult,
  type VerificationPorts,
  type VerifiedRecords,
  type VerifiedRow,
  type VerifiedTable,
} from "./ports.ts";
import { integerOf } from "../sql/row-order.ts";
import { keyOfBucket } from "./row-names.ts";

interface PortParts<Tx> {
  client: Client;
  database: CellDatabase<Tx>;
  tables: readonly Claimable[];
  types: Types;
  transactions: LeasedTransactionPorts<Tx>;
  beginDeadlineMs: number;
}

const REPAIR_ATTEMPTS = 3;
const MAX_REPAIR_PAUSE_MS = 200;
const DEFERRED_PAGE_SIZE = 100;

/** Used if the coordinator does not say how long to wait. */
const DEFAULT_RETRY_AFTER_MS = 30_000;

/** Connects verification with a client and a database. Reads the limits of the coordinator first. */
export async function createPorts<Tx>({
  client,
  database,
  tables,
  types,
  transactions,
  beginDeadlineMs,
}: PortParts<Tx>): Promise<VerificationPorts> {
  const { verification, readCommitted } = database;
  const limits = limitsOf(await client.limits());
  const readers = new Map(
    tables.map((claimable) => [claimable.source as string, new TableReader(claimable, limits, types)]),
  );
  const repair = async (
    rows: Parameters<VerificationPorts["repair"]>[0],
    decide: (rows: LockedRows) => Batch | undefined,
  ): Promise<RepairResult> => {
    let isNeeded = false;
    let isRolledBack = false;
    const report = (event: LeaseEvent): void => {
      isRolledBack ||= event.kind === "contradicted";
      transactions.report(event);
    };
    const leased = new LeasedTransaction({ ...transactions, local: readCommitted, report }, uuidv7());
    try {
      await leased.inTransaction(
        async (tx) => {
          const locked = new Map<string, VerifiedRow>();
          for (const [source, reader] of readers) {
            const ids = rows.filter(({ type }) => type === source).map(({ id }) => id);
            if (ids.length === 0) continue;
            for (const row of await verification.byIds(tx, reader.claimable, ids))
              locked.set(...reader.keyed(row));
          }
          const batch = decide(locked);
          isNeeded = batch !== undefined;
          return { value: undefined, claimed: batch === undefined ? undefined : { batch, sources: rows } };
        },
        { deadlineMs: beginDeadlineMs },
      );
      return { kind: isRolledBack ? "rolled_back" : isNeeded ? "done" : "not_needed" };
    } catch (error) {
      if (isLeaseholdError(error) && error.outcomeKnown && error.conflicts.length > 0)
        return { kind: "refused", conflicts: error.conflicts };
      throw error;
    }
  };
  return {
    cell: client.cell ?? "",
    types,
    limits,
    tables: [...readers.values()].map((reader) => reader.table(verification)),
    records: recordsOf(client),
    repair: (rows, decide) => withRetries(() => repair(rows, decide)),
    deferredReleases: (asked) => deferredReleases(database, types, asked),
    slots: slotsOf(client),
    progress: { load: () => verification.loadProgress(), save: (text) => verification.saveProgress(text) },
    queue: {
      list: (page) => verification.listQueue(page),
      remove: (rows) => verification.removeFromQueue(rows),
    },
  };
}

/**
 * Reads the rows of a table with their claims. Reads `enabled` once, so that it stays the same during a run.
 */
class TableReader {
  readonly claimable: Claimable;
  readonly #limits: Limits;
  readonly #types: Types;
  readonly #enabled: ReadonlySet<Attribute>;

  constructor(claimable: Claimable, limits: Limits, types: Types) {
    this.claimable = claimable;
    this.#limits = limits;
    this.#types = types;
    const disabled = new Set(
      claimable.attributes.filter((attribute) => !attribute.isEnabled()).map(({ bucket }) => bucket),
    );
    // If two columns share a bucket type, a claim could belong to either, so a disabled one disables both.
    this.#enabled = new Set(claimable.attributes.filter(({ bucket }) => !disabled.has(bucket)));
  }

  keyed(inspected: InspectedRow): [string, VerifiedRow] {
    const row = this.#verifiedRow(inspected);
    return [rowKey({ type: this.claimable.source, id: row.id }), row];
  }

  table<Tx>(database: CellDatabase<Tx>["verification"]): VerifiedTable {
    const { claimable } = this;
    return {
      name: claimable.name,
      source: claimable.source,
      hasEveryAttribute: this.#enabled.size === claimable.attributes.length,
      bucketTypes: [...new Set([...this.#enabled].map(({ bucket }) => bucket))] as Bucket["type"][],
      count: (range) => database.count(claimable, range),
      page: async (range) => (await database.page(claimable, range)).map((row) => this.#verifiedRow(row)),
      read: async (ids) =>
        (await database.byIds(undefined, claimable, ids)).map((row) => this.#verifiedRow(row)),
    };
  }

  /**
   * Throws if the database spells the id differently than the row: then order and searches would use another
   * id.
   */
  #verifiedRow({ row, idText, ageMs, isIntegerId }: InspectedRow): VerifiedRow {
    const { claimable } = this;
    const id = claimable.idOf(row);
    const fault =
      idFault(id, this.#limits) ??
      (id === idText ? undefined : `is ${idText} in the database`) ??
      orderFault(isIntegerId, id);
    if (fault !== undefined)
      throw invalidArgument(
        claimable.idName,
        `of a row of ${claimable.name}, ${JSON.stringify(id)}, ${fault}: ` +
          "change the id, or leave the table out of `tables`",
      );
    const claims = claimable.claimsOf(row, (attribute) => this.#enabled.has(attribute));
    return {
      id,
      claims: claims.map((claim) => ({ ...claim, fault: faultOf(claim, this.#limits, this.#types) })),
      ageMs,
    };
  }
}

/**
 * Why a coordinator with lower limits would refuse this claim. It would refuse the whole lease because of it.
 */
function faultOf({ bucket, subject, scope }: RowClaim, limits: Limits, types: Types): string | undefined {
  if (limits.valueBytes < defaultLimits.valueBytes) {
    const made = canonicalOf(types, bucket, limits.valueBytes);
    if (!made.ok) return made.detail;
  }
  if (limits.idBytes === defaultLimits.idBytes) return undefined;
  const subjectFault = subject && idFault(subject.id, limits);
  if (subjectFault !== undefined) return `the id of the subject ${subjectFault}`;
  const scopeFault = scope === undefined ? undefined : idFault(scope, limits);
  return scopeFault === undefined ? undefined : `the scope ${scopeFault}`;
}

/** Limits that the coordinator does not list have their defaults. */
function limitsOf(answer: Awaited<ReturnType<Client["limits"]>>): Limits {
  const values = new Map(answer.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    limitNames.map((name) => [name, values.get(apiLimitName(name)) ?? defaultLimits[name]]),
  ) as unknown as Limits;
}

const orderFault = (isIntegerId: boolean, id: string): string | undefined =>
  isIntegerId && integerOf(id) !== id ? "is not a whole number, 0 or more" : undefined;

/** Retries after a deadlock or a lock timeout, which roll back the transaction together with its lease. */
async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (isLeaseholdError(error) || attempt === REPAIR_ATTEMPTS) throw error;
      await pause(MAX_REPAIR_PAUSE_MS * Math.random(), []);
    }
  }
}

async function deferredReleases<Tx>(
  database: CellDatabase<Tx>,
  types: Types,
  asked: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (let afterUuid = ""; ;) {
    const page = await database.listDeferred({ afterUuid, limit: DEFERRED_PAGE_SIZE });
    for (const { bucket, source } of page.flatMap(({ batch }) => batch.destroys ?? [])) {
      const key =
        source && releaseKey(keyOfBucket(types, bucket), { type: source.type, id: String(source.id) });
      if (key !== undefined && asked.has(key)) keys.add(key);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < DEFERRED_PAGE_SIZE) return keys;
    afterUuid = last.uuid;
  }
}

function recordsOf({ records }: Client): VerifiedRecords {
  return {
    async list({ source, bucketTypes, after, upTo, pageSize }) {
      const range = { sourceIdGt: after === "" ? undefined : after, sourceIdLte: upTo };
      const items: ClaimRecord[] = [];
      let asOfMs: number | undefined;
      const pages = records.list({ sourceType: source, bucketTypes, ...range, pageSize }).pages();
      for await (const page of pages) {
        items.push(...page.items);
        asOfMs ??= page.asOf.getTime();
        const { nextPageToken } = page;
        // A page without records has no source id to continue from.
        const isWhole = !page.isSplit && (items.length > 0 || nextPageToken === "");
        if (isWhole) return { records: items, asOfMs, nextPageToken };
      }
      throw new Error("the client answered a listing without a last page");
    },
    async digests({ source, bucketTypes, ranges }) {
      const asked = ranges.map(({ after, upTo }) => ({
        sourceIdGt: after === "" ? undefined : after,
        sourceIdLte: upTo,
      }));
      const { asOf, digests } = await records.digests({ sourceType: source, bucketTypes, ranges: asked });
      const answer = digests.map(({ count, hash, held, newestUpdatedAt }) => ({
        count,
        hash,
        held,
        newestUpdatedAtMs: newestUpdatedAt?.getTime(),
      }));
      return { asOfMs: asOf.getTime(), digests: answer };
    },
    async lookup(buckets) {
      return (await records.lookup(buckets)).map(({ record }) => record);
    },
  };
}

function slotsOf({ verificationSlots }: Client): VerificationPorts["slots"] {
  return {
    async take(uuid) {
      try {
        const { expires_in_ms: expiresInMs } = await verificationSlots.take(uuid);
        return { isTaken: true, expiresInMs };
      } catch (error) {
        if (!isLeaseholdError(error) || error.reason !== "NO_VERIFICATION_SLOT") throw error;
        return { isTaken: false, retryAfterMs: error.retryAfterMs ?? DEFAULT_RETRY_AFTER_MS };
      }
    },
    release: async (uuid) => void (await verificationSlots.release(uuid)),
  };
}
