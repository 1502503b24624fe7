import { v7 as uuidv7 } from "uuid";
import type { Client } from "../../client/client.ts";
import { pause } from "../../client/attempt-abort.ts";
import { isLeaseholdError } from "../../client/errors.ts";
import type { Batch, Bucket, LookupResult, Record as ClaimRecord } from "../../client/api-types.ts";
import { idFault } from "../../core/ids.ts";
import { canonicalize } from "../../core/canonical/canonicalize.ts";
import { defaultLimits, limitNames, apiLimitName, type Limits } from "../../core/limits.ts";
import type { Attribute, Claimable, RowClaim } from "../claimable.ts";
import { invalidArgument } from "../errors.ts";
import { LeasedTransaction, type LeasedTransactionPorts, type LeaseEvent } from "../leased-transaction.ts";
import type { CellDatabase } from "../local.ts";
import type { InspectedRow } from "./database.ts";
import { idKindOf, integerOf } from "./id-column.ts";
import { keyOfBucket } from "./named.ts";
import {
  givenUpKey,
  rowKey,
  type LockedRows,
  type Mended,
  type VerificationPorts,
  type VerifiedRecords,
  type VerifiedRow,
  type VerifiedTable,
} from "./ports.ts";

interface Parts<Tx> {
  client: Client;
  database: CellDatabase<Tx>;
  tables: readonly Claimable[];
  /** Of its leases. */
  transactions: LeasedTransactionPorts<Tx>;
  beginDeadlineMs: number;
}

const MEND_TRIES = 3;
const MEND_PAUSE_MS = 200;
const DEFERRED_AT_ONCE = 100;

/** Said where a coordinator asks to wait and does not say how long. */
const RETRY_AFTER_MS = 30_000;

/** A verification of a cell, over its client and its database. Asks the coordinator what it takes. */
export async function portsOf<Tx>({
  client,
  database,
  tables,
  transactions,
  beginDeadlineMs,
}: Parts<Tx>): Promise<VerificationPorts> {
  const { verification, readCommitted } = database;
  const limits = limitsOf(await client.limits());
  const tellers = new Map(
    tables.map((claimable) => [claimable.source as string, new Teller(claimable, limits)]),
  );
  const mend = async (
    rows: Parameters<VerificationPorts["mend"]>[0],
    decide: (rows: LockedRows) => Batch | undefined,
  ): Promise<Mended> => {
    let isWanted = false;
    let isUndone = false;
    const report = (event: LeaseEvent): void => {
      isUndone ||= event.kind === "contradicted";
      transactions.report(event);
    };
    const leased = new LeasedTransaction({ ...transactions, local: readCommitted, report }, uuidv7());
    try {
      await leased.inTransaction(
        async (tx) => {
          const locked = new Map<string, VerifiedRow>();
          for (const [source, teller] of tellers) {
            const ids = rows.filter(({ type }) => type === source).map(({ id }) => id);
            if (ids.length === 0) continue;
            for (const row of await verification.byIds(tx, teller.claimable, ids))
              locked.set(...teller.keyed(row));
          }
          const batch = decide(locked);
          isWanted = batch !== undefined;
          return { value: undefined, claimed: batch === undefined ? undefined : { batch, sources: rows } };
        },
        { deadlineMs: beginDeadlineMs },
      );
      return { kind: isUndone ? "undone" : isWanted ? "done" : "nothing" };
    } catch (error) {
      if (isLeaseholdError(error) && error.outcomeKnown && error.conflicts.length > 0)
        return { kind: "refused", conflicts: error.conflicts };
      throw error;
    }
  };
  return {
    cell: client.cell ?? "",
    limits,
    tables: [...tellers.values()].map((teller) => teller.table(verification)),
    records: recordsOf(client),
    mend: (rows, decide) => triedAgain(() => mend(rows, decide)),
    givenUpLater: (asked) => givenUpLater(database, asked),
    slots: slotsOf(client),
    progress: { load: () => verification.loadProgress(), save: (text) => verification.saveProgress(text) },
    queue: { list: (page) => verification.queued(page), remove: (rows) => verification.unqueue(rows) },
  };
}

/** Tells the claims of a table's rows. The switches are read once, so that a run sees them all alike. */
class Teller {
  readonly claimable: Claimable;
  readonly #limits: Limits;
  readonly #on: ReadonlySet<Attribute>;

  constructor(claimable: Claimable, limits: Limits) {
    this.claimable = claimable;
    this.#limits = limits;
    const off = new Set(
      claimable.attributes.filter((attribute) => !attribute.isEnabled()).map(({ bucket }) => bucket),
    );
    // Of two columns with one bucket type, nobody could tell which of them a claim is for.
    this.#on = new Set(claimable.attributes.filter(({ bucket }) => !off.has(bucket)));
  }

  keyed(inspected: InspectedRow): [string, VerifiedRow] {
    const row = this.#tell(inspected);
    return [rowKey({ type: this.claimable.source, id: row.id }), row];
  }

  table<Tx>(database: CellDatabase<Tx>["verification"]): VerifiedTable {
    const { claimable } = this;
    return {
      name: claimable.name,
      source: claimable.source,
      isWhole: this.#on.size === claimable.attributes.length,
      bucketTypes: [...new Set([...this.#on].map(({ bucket }) => bucket))] as Bucket["type"][],
      count: (range) => database.count(claimable, range),
      page: async (range) => (await database.page(claimable, range)).map((row) => this.#tell(row)),
      read: async (ids) => (await database.byIds(undefined, claimable, ids)).map((row) => this.#tell(row)),
    };
  }

  /** Where the database and the row spell the id differently, its order and its searches are about other ids than the claims are. */
  #tell({ row, idText, ageMs }: InspectedRow): VerifiedRow {
    const { claimable } = this;
    const id = claimable.idOf(row);
    const fault =
      idFault(id, this.#limits) ??
      (id === idText ? undefined : `is ${idText} in the database`) ??
      orderFault(claimable, id);
    if (fault !== undefined)
      throw invalidArgument(
        claimable.idName,
        `of a row of ${claimable.name}, ${JSON.stringify(id)}, ${fault}: its claims cannot be verified`,
      );
    const claims = claimable.claimsOf(row, (attribute) => this.#on.has(attribute));
    return { id, claims: claims.map((claim) => ({ ...claim, fault: faultOf(claim, this.#limits) })), ageMs };
  }
}

/** What a coordinator with lower limits than usual has against it: it would refuse the whole lease for one such name. */
function faultOf({ bucket, subject }: RowClaim, limits: Limits): string | undefined {
  if (limits.valueBytes < defaultLimits.valueBytes) {
    const made = canonicalize(bucket.type, bucket.value, limits.valueBytes);
    if (!made.ok) return made.detail;
  }
  if (subject === undefined || limits.idBytes === defaultLimits.idBytes) return undefined;
  const fault = idFault(subject.id, limits);
  return fault === undefined ? undefined : `the id of the subject ${fault}`;
}

/** Those that it does not tell are as they usually are. */
function limitsOf(told: Awaited<ReturnType<Client["limits"]>>): Limits {
  const values = new Map(told.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    limitNames.map((name) => [name, values.get(apiLimitName(name)) ?? defaultLimits[name]]),
  ) as unknown as Limits;
}

const orderFault = (claimable: Claimable, id: string): string | undefined =>
  idKindOf(claimable) === "integer" && integerOf(id) !== id ? "is no whole number from 0 on" : undefined;

/** A deadlock or a lock that took too long undoes the transaction; the lease was rolled back with it. */
async function triedAgain<T>(work: () => Promise<T>): Promise<T> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (isLeaseholdError(error) || tried === MEND_TRIES) throw error;
      await pause(MEND_PAUSE_MS * Math.random(), []);
    }
  }
}

async function givenUpLater<Tx>(
  database: CellDatabase<Tx>,
  asked: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (let afterUuid = ""; ;) {
    const page = await database.listDeferred({ afterUuid, limit: DEFERRED_AT_ONCE });
    for (const { bucket, source } of page.flatMap(({ batch }) => batch.destroys ?? [])) {
      const key = source && givenUpKey(keyOfBucket(bucket), { type: source.type, id: String(source.id) });
      if (key !== undefined && asked.has(key)) keys.add(key);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < DEFERRED_AT_ONCE) return keys;
    afterUuid = last.uuid;
  }
}

function recordsOf({ records }: Client): VerifiedRecords {
  return {
    async list({ source, bucketTypes, after, upTo, pageSize }) {
      const range = { sourceIdGt: after === "" ? undefined : after, sourceIdLte: upTo };
      const { value } = await records
        .list({ sourceType: source, bucketTypes, ...range, pageSize })
        .pages()
        .next();
      if (value === undefined) throw new Error("a listing without a page");
      return { records: value.items, asOfMs: value.asOf.getTime(), nextPageToken: value.nextPageToken };
    },
    async digests({ source, bucketTypes, ranges }) {
      const asked = ranges.map(({ after, upTo }) => ({
        sourceIdGt: after === "" ? undefined : after,
        sourceIdLte: upTo,
      }));
      const { asOf, digests } = await records.digests({ sourceType: source, bucketTypes, ranges: asked });
      const told = digests.map(({ count, hash, held, newestUpdatedAt }) => ({
        count,
        hash,
        held,
        newestUpdatedAtMs: newestUpdatedAt?.getTime(),
      }));
      return { asOfMs: asOf.getTime(), digests: told };
    },
    async lookup(buckets) {
      return (await records.lookup(buckets)).map(holderOf);
    },
  };
}

/** Of another cell's record a cell is not told the source. */
function holderOf({ record }: LookupResult): ClaimRecord | "other" | undefined {
  if (record === undefined) return undefined;
  return "source" in record ? record : "other";
}

function slotsOf({ verificationSlots }: Client): VerificationPorts["slots"] {
  return {
    async take(uuid) {
      try {
        const { expires_in_ms: expiresInMs } = await verificationSlots.take(uuid);
        return { isTaken: true, expiresInMs };
      } catch (error) {
        if (!isLeaseholdError(error) || error.reason !== "NO_VERIFICATION_SLOT") throw error;
        return { isTaken: false, retryAfterMs: error.retryAfterMs ?? RETRY_AFTER_MS };
      }
    },
    release: async (uuid) => void (await verificationSlots.release(uuid)),
  };
}
