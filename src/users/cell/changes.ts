import type { Batch, Subject } from "../client/api-types.ts";
import type { Types } from "../../common/types/types.ts";
import type { Attribute, Claimable, RowClaim } from "./claimable.ts";
import { canonicalOf } from "./declared-types.ts";
import {
  fieldError,
  invalidArgument,
  InvalidNameError,
  onePerField,
  rememberFields,
  type Origin,
} from "./errors.ts";
import type { AnyRow, AnyTable } from "./table.ts";

/** A row of the cell, as the coordinator knows it. */
export interface SourceRow {
  type: string;
  id: string;
}

/** The claims that a transaction changes, ready for a begin. */
export interface ClaimBatch {
  batch: Batch;
  /** In the order of the lists of the batch. */
  origins: { creates: Origin[]; destroys: Origin[]; replaces: Origin[] };
  /** Every row of the batch, each once. */
  sources: SourceRow[];
}

interface Change {
  claimable: Claimable;
  /** As the database stores it. */
  id: unknown;
  /** The row before the transaction. Undefined if it did not exist. */
  before: AnyRow | undefined;
  /** The row now. Undefined if it is gone. */
  after: AnyRow | undefined;
  /** Whether the row was there again after a deletion. A later one may be undone, and the first one not. */
  hasReturned: boolean;
}

/** A name as a begin takes it. */
type ClaimedName = Pick<RowClaim, "bucket" | "source" | "scope"> & { subject: Subject };

interface ChangedName extends RowClaim {
  key: string;
  origin: Origin;
}

/** A name that the transaction cannot claim, known before any begin. */
interface RefusedName {
  error: InvalidNameError;
  problem: "invalid" | "taken";
}

/** What a transaction did to its claimed rows. Only the difference between its start and its end counts. */
export class Changes {
  readonly #rows = new Map<string, Change>();
  readonly #switches = new Map<Attribute, boolean>();
  readonly #types: Types;

  constructor(types: Types) {
    this.#types = types;
  }

  add<T extends AnyTable>(
    claimable: Claimable<T>,
    before: AnyRow | undefined,
    after: AnyRow | undefined,
  ): void {
    const row = after ?? before;
    if (row === undefined) return;
    const id = claimable.idOf(row);
    if (before !== undefined && claimable.idOf(before) !== id) {
      throw invalidArgument(
        claimable.idName,
        `of a row of ${claimable.name} changed, but a claimed row keeps its id: insert a new row instead`,
      );
    }
    const key = keyOf(claimable, id);
    const known = this.#rows.get(key);
    if (known === undefined) {
      this.#rows.set(key, { claimable, id: row[claimable.idName], before, after, hasReturned: false });
      return;
    }
    known.hasReturned ||= known.after === undefined && after !== undefined;
    known.after = after;
  }

  /** The rows that were changed. */
  get sources(): SourceRow[] {
    return [...this.#rows.values()].map(({ claimable, id }) => ({ type: claimable.source, id: String(id) }));
  }

  /**
   * Reads every row again, because only the final state in the database counts. A savepoint may have undone a
   * change, or a trigger may have altered it.
   *
   * @param checkGone is given the ids of rows that are not found, first of those that were not deleted
   */
  async refresh(
    read: (claimable: Claimable, ids: readonly unknown[]) => Promise<readonly AnyRow[]>,
    checkGone: (claimable: Claimable, ids: readonly string[], isDeleted: boolean) => Promise<void>,
  ): Promise<void> {
    const all = [...this.#rows.values()];
    for (const claimable of new Set(all.map((change) => change.claimable))) {
      const changes = all.filter((change) => change.claimable === claimable);
      const rows = await read(
        claimable,
        changes.map(({ id }) => id),
      );
      const byKey = new Map(rows.map((row) => [keyOf(claimable, claimable.idOf(row)), row]));
      const asked = new Set(changes.map(({ id }) => String(id)));
      const other = rows.map((row) => claimable.idOf(row)).find((id) => !asked.has(id));
      if (other !== undefined) throw otherSpelling(claimable, other);
      const found = changes.map((change) => byKey.get(keyOf(claimable, String(change.id))));
      for (const isDeleted of [false, true]) {
        const missing = changes.filter(
          ({ after, hasReturned }, index) =>
            found[index] === undefined && (after === undefined && !hasReturned) === isDeleted,
        );
        const ids = missing.map(({ id }) => String(id));
        if (ids.length > 0) await checkGone(claimable, ids, isDeleted);
      }
      for (const [index, change] of changes.entries()) change.after = found[index];
    }
  }

  /**
   * Answers undefined if no claim changes, so that no lease is needed.
   *
   * @throws `InvalidNameError` for values that cannot be names. It is about all of them.
   */
  batch(): ClaimBatch | undefined {
    const before = new Map<string, ChangedName>();
    const after = new Map<string, ChangedName>();
    const refused: RefusedName[] = [];
    for (const { was, is } of [...this.#rows.values()].map((change) => this.#changed(change, refused))) {
      for (const name of was) if (!before.has(name.key)) before.set(name.key, name);
      for (const name of is) {
        const other = after.get(name.key);
        if (other === undefined) after.set(name.key, name);
        else refused.push({ error: sameName(name, other), problem: "taken" });
      }
    }
    throwIfAny(refused);
    const creates = [...after.values()].filter(({ key }) => !before.has(key));
    const destroys = [...before.values()].filter(({ key }) => !after.has(key));
    const replaces = [...after.values()].filter((name) => isReplaced(before.get(name.key), name));
    const all = [...creates, ...destroys, ...replaces];
    return all.length === 0
      ? undefined
      : {
          batch: batchFrom(creates, destroys, replaces),
          origins: originsOf(creates, destroys, replaces),
          sources: sourcesOf(all),
        };
  }

  /**
   * The names of a row that changed. Unchanged values are not checked, because they may never have been
   * names. Notes those that cannot be names in `refused`.
   */
  #changed(
    { claimable, before, after }: Change,
    refused: RefusedName[],
  ): { was: ChangedName[]; is: ChangedName[] } {
    const claimsOf = (row: AnyRow | undefined): RowClaim[] =>
      row === undefined ? [] : claimable.claimsOf(row, (attribute) => this.#isOn(attribute));
    const was = claimsOf(before);
    const is = claimsOf(after);
    return {
      was: was
        .filter((claim) => !isIn(is, claim))
        .flatMap((claim) => nameOf(this.#types, claimable, claim) ?? []),
      is: is
        .filter((claim) => !isIn(was, claim))
        .flatMap((claim) => {
          const name = nameOf(this.#types, claimable, claim);
          if (name === undefined)
            refused.push({ error: unnameable(this.#types, claimable, claim), problem: "invalid" });
          return name ?? [];
        }),
    };
  }

  /** Reads `enabled` once, so that both sides of a change use the same value. */
  #isOn(attribute: Attribute): boolean {
    const known = this.#switches.get(attribute);
    if (known !== undefined) return known;
    const isOn = attribute.isEnabled();
    this.#switches.set(attribute, isOn);
    return isOn;
  }
}

const otherSpelling = ({ name, idName }: Claimable, id: string): Error =>
  invalidArgument(idName, `of a changed row of ${name} is stored as ${id}: use the database's spelling`);

const isIn = (claims: readonly RowClaim[], claim: RowClaim): boolean =>
  claims.some((other) => isSameClaim(other, claim));

const keyOf = ({ source }: Claimable, id: string): string => `${source}\n${id}`;

const isSameClaim = (one: RowClaim, other: RowClaim): boolean =>
  one.attribute === other.attribute &&
  one.bucket.value === other.bucket.value &&
  one.subject?.id === other.subject?.id &&
  one.scope === other.scope &&
  one.source.id === other.source.id;

/**
 * Two spellings are the same name if their canonical forms are equal. A change of case must become a replace,
 * because the coordinator refuses a batch that destroys and creates the same name. A value without a
 * canonical form (undefined) never had a claim and cannot get one.
 */
function nameOf(types: Types, claimable: Claimable, claim: RowClaim): ChangedName | undefined {
  const made = canonicalOf(types, claim.bucket);
  return made.ok
    ? { ...claim, key: `${claim.bucket.type}\n${made.canonical}`, origin: originOf(claimable, claim) }
    : undefined;
}

function unnameable(types: Types, claimable: Claimable, claim: RowClaim): InvalidNameError {
  const made = canonicalOf(types, claim.bucket);
  return new InvalidNameError(originOf(claimable, claim), `cannot be claimed: ${made.ok ? "" : made.detail}`);
}

/** Throws the first error, which `toValidationErrors` then tells to be about the fields of all of them. */
function throwIfAny(refused: readonly RefusedName[]): void {
  const [first] = refused;
  if (first === undefined) return;
  const fields = refused.map(({ error, problem }) => fieldError(error.origin, problem));
  rememberFields(first.error, onePerField(fields));
  throw first.error;
}

const originOf = ({ name }: Claimable, { attribute, source }: RowClaim): Origin => ({
  table: name,
  attribute,
  id: source.id,
});

/** Whether a name that the row keeps needs a replace: its spelling, subject, scope or source changed. */
function isReplaced(
  before: ChangedName | undefined,
  { bucket, subject, source, scope }: ChangedName,
): boolean {
  if (before === undefined) return false;
  const isSame =
    before.bucket.value === bucket.value &&
    before.scope === scope &&
    before.subject?.id === subject?.id &&
    before.source.type === source.type;
  return !isSame || before.source.id !== source.id || before.subject?.type !== subject?.type;
}

const sameName = ({ origin }: ChangedName, { origin: other }: ChangedName): InvalidNameError =>
  new InvalidNameError(origin, `is the same name as ${other.attribute} of ${other.table} ${other.id}`);

/**
 * A destroy names its source, so that it cannot destroy the claim of another row that has the name by now. It
 * does not name the subject, which may have been different when the claim was made. `allow_missing`: a row
 * that is older than the declaration of its column may have no claim to destroy or replace (B12).
 */
function batchFrom(
  creates: readonly ChangedName[],
  destroys: readonly ChangedName[],
  replaces: readonly ChangedName[],
): Batch {
  const claim = ({ bucket, subject, source, scope, origin }: ChangedName): ClaimedName => {
    if (subject === undefined)
      throw invalidArgument(
        "subject.id",
        `of ${origin.table} ${origin.id} is empty: set it, because each claim needs a subject`,
      );
    return { bucket, subject, source, ...(scope === undefined ? {} : { scope }) };
  };
  return {
    ...(creates.length === 0 ? {} : { creates: creates.map(claim) }),
    ...(destroys.length === 0
      ? {}
      : { destroys: destroys.map(({ bucket, source }) => ({ bucket, source })) }),
    ...(replaces.length === 0 ? {} : { replaces: replaces.map(claim) }),
    ...(destroys.length + replaces.length === 0 ? {} : { allow_missing: true }),
  };
}

const originsOf = (
  creates: readonly ChangedName[],
  destroys: readonly ChangedName[],
  replaces: readonly ChangedName[],
): ClaimBatch["origins"] => ({
  creates: creates.map(({ origin }) => origin),
  destroys: destroys.map(({ origin }) => origin),
  replaces: replaces.map(({ origin }) => origin),
});

const sourcesOf = (names: readonly ChangedName[]): SourceRow[] => [
  ...new Map(
    names.map(({ source }) => [`${source.type}\n${source.id}`, { type: source.type, id: source.id }]),
  ).values(),
];
