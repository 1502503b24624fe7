import type { Table } from "drizzle-orm";
import type { Batch, Subject } from "../client/api-types.ts";
import { canonicalize } from "../core/canonical/canonicalize.ts";
import { defaultLimits } from "../core/limits.ts";
import type { AnyRow, Attribute, Claimable, RowClaim } from "./claimable.ts";
import { InvalidNameError, invalidArgument } from "./errors.ts";

/** Where an op came from, to tell a user which field it is about. */
export interface Origin {
  table: string;
  attribute: string;
  /** Of the row. */
  id: string;
}

/** A row of the cell's, as the coordinator knows it. */
export interface SourceRow {
  type: string;
  id: string;
}

/** The claims that a transaction changes, ready for a begin. */
export interface ClaimBatch {
  batch: Batch;
  /** In the order of the batch's own lists. */
  origins: { creates: Origin[]; destroys: Origin[]; replaces: Origin[] };
  /** Every row that it is about, each once. */
  sources: SourceRow[];
}

interface Change {
  claimable: Claimable;
  /** As the database has it. */
  id: unknown;
  /** As it was before the transaction; undefined: it was not there. */
  before: AnyRow | undefined;
  /** As it is now; undefined: it is gone. */
  after: AnyRow | undefined;
}

interface Named extends RowClaim {
  key: string;
  origin: Origin;
}

/** What a transaction did to its claimed rows. Only the difference between its first and its last moment counts. */
export class Changes {
  readonly #rows = new Map<string, Change>();
  readonly #switches = new Map<Attribute, boolean>();

  add<T extends Table>(claimable: Claimable<T>, before: AnyRow | undefined, after: AnyRow | undefined): void {
    const row = after ?? before;
    if (row === undefined) return;
    const id = claimable.idOf(row);
    if (before !== undefined && claimable.idOf(before) !== id) {
      throw invalidArgument(
        claimable.idName,
        `of a row of ${claimable.name} changed: the id of a claimed row is for good`,
      );
    }
    const key = keyOf(claimable, id);
    const known = this.#rows.get(key);
    if (known === undefined) this.#rows.set(key, { claimable, id: row[claimable.idName], before, after });
    else known.after = after;
  }

  /**
   * Reads every row again: what counts is what the database holds in the end. A savepoint may have taken a change back, a trigger may have made
   * another one of it.
   */
  async refresh(
    read: (claimable: Claimable, ids: readonly unknown[]) => Promise<readonly AnyRow[]>,
  ): Promise<void> {
    const all = [...this.#rows.values()];
    for (const claimable of new Set(all.map((change) => change.claimable))) {
      const changes = all.filter((change) => change.claimable === claimable);
      const rows = await read(
        claimable,
        changes.map(({ id }) => id),
      );
      const byKey = new Map(rows.map((row) => [keyOf(claimable, claimable.idOf(row)), row]));
      for (const change of changes) change.after = byKey.get(keyOf(claimable, String(change.id)));
    }
  }

  /** Undefined when no claim changes: then there is nothing to ask. Throws `InvalidNameError` for a value that can be no name. */
  batch(): ClaimBatch | undefined {
    const before = new Map<string, Named>();
    const after = new Map<string, Named>();
    for (const { was, is } of [...this.#rows.values()].map((change) => this.#changed(change))) {
      for (const name of was) if (!before.has(name.key)) before.set(name.key, name);
      for (const name of is) {
        const other = after.get(name.key);
        if (other !== undefined) throw sameName(name, other);
        after.set(name.key, name);
      }
    }
    const creates = [...after.values()].filter(({ key }) => !before.has(key));
    const destroys = [...before.values()].filter(({ key }) => !after.has(key));
    const replaces = [...after.values()].filter((name) => isReplaced(before.get(name.key), name));
    const all = [...creates, ...destroys, ...replaces];
    return all.length === 0
      ? undefined
      : {
          batch: wire(creates, destroys, replaces),
          origins: originsOf(creates, destroys, replaces),
          sources: sourcesOf(all),
        };
  }

  /** The names of a row that are not what they were. What a transaction leaves alone is not looked at: it may never have been a name. */
  #changed({ claimable, before, after }: Change): { was: Named[]; is: Named[] } {
    const claimsOf = (row: AnyRow | undefined): RowClaim[] =>
      row === undefined ? [] : claimable.claimsOf(row, (attribute) => this.#isOn(attribute));
    const was = claimsOf(before);
    const is = claimsOf(after);
    return {
      was: was.filter((claim) => !isIn(is, claim)).flatMap((claim) => named(claimable, claim) ?? []),
      is: is
        .filter((claim) => !isIn(was, claim))
        .map((claim) => named(claimable, claim) ?? impossible(claimable, claim)),
    };
  }

  /** Asked once, so that both sides of a change are seen with the same switch. */
  #isOn(attribute: Attribute): boolean {
    const known = this.#switches.get(attribute);
    if (known !== undefined) return known;
    const isOn = attribute.isEnabled();
    this.#switches.set(attribute, isOn);
    return isOn;
  }
}

const isIn = (claims: readonly RowClaim[], claim: RowClaim): boolean =>
  claims.some((other) => isSameClaim(other, claim));

const keyOf = ({ source }: Claimable, id: string): string => `${source}\n${id}`;

const isSameClaim = (one: RowClaim, other: RowClaim): boolean =>
  one.attribute === other.attribute &&
  one.bucket.value === other.bucket.value &&
  one.subject?.id === other.subject?.id &&
  one.source.id === other.source.id;

/**
 * Two spellings are one name when their canonical forms are equal, so a change of case only must become a replace: the coordinator refuses a batch
 * that destroys and creates one name. What has no canonical form (undefined) never had a claim, and cannot get one.
 */
function named(claimable: Claimable, claim: RowClaim): Named | undefined {
  const { type, value } = claim.bucket;
  const made = canonicalize(type, value, defaultLimits.valueBytes);
  return made.ok
    ? { ...claim, key: `${type}\n${made.canonical}`, origin: originOf(claimable, claim) }
    : undefined;
}

function impossible(claimable: Claimable, claim: RowClaim): never {
  const made = canonicalize(claim.bucket.type, claim.bucket.value, defaultLimits.valueBytes);
  throw new InvalidNameError(originOf(claimable, claim), `cannot be claimed: ${made.ok ? "" : made.detail}`);
}

const originOf = ({ name }: Claimable, { attribute, source }: RowClaim): Origin => ({
  table: name,
  attribute,
  id: source.id,
});

/** Of one name before and after; of the same spelling, subject and source it stays as it is. */
function isReplaced(before: Named | undefined, { bucket, subject, source }: Named): boolean {
  if (before === undefined) return false;
  const isSame =
    before.bucket.value === bucket.value &&
    before.subject?.id === subject?.id &&
    before.source.type === source.type;
  return !isSame || before.source.id !== source.id || before.subject?.type !== subject?.type;
}

const sameName = ({ origin }: Named, { origin: other }: Named): Error =>
  new InvalidNameError(origin, `is the same name as ${other.attribute} of ${other.table} ${other.id}`);

/**
 * A destroy names its source, so that it can never take the claim away from another row that has the name by now; but not the subject, which may have
 * been another one when the claim was made. A row from before its column was claimed has no claim to destroy: that is fine, and counted.
 */
function wire(creates: readonly Named[], destroys: readonly Named[], replaces: readonly Named[]): Batch {
  const claim = ({
    bucket,
    subject,
    source,
    origin,
  }: Named): { bucket: Named["bucket"]; subject: Subject; source: Named["source"] } => {
    if (subject === undefined)
      throw invalidArgument(
        "subject.id",
        `of ${origin.table} ${origin.id} is empty: whom is the name about?`,
      );
    return { bucket, subject, source };
  };
  return {
    ...(creates.length === 0 ? {} : { creates: creates.map(claim) }),
    ...(destroys.length === 0
      ? {}
      : { destroys: destroys.map(({ bucket, source }) => ({ bucket, source })), allow_missing: true }),
    ...(replaces.length === 0 ? {} : { replaces: replaces.map(claim) }),
  };
}

const originsOf = (
  creates: readonly Named[],
  destroys: readonly Named[],
  replaces: readonly Named[],
): ClaimBatch["origins"] => ({
  creates: creates.map(({ origin }) => origin),
  destroys: destroys.map(({ origin }) => origin),
  replaces: replaces.map(({ origin }) => origin),
});

const sourcesOf = (names: readonly Named[]): SourceRow[] => [
  ...new Map(
    names.map(({ source }) => [`${source.type}\n${source.id}`, { type: source.type, id: source.id }]),
  ).values(),
];
