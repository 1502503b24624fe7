import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import type { Cell, Key, Lease, TypeSet } from "../../users/client/index.ts";
import type { Change, IdentitiesChange } from "../../users/client/api-types.ts";
import { canonicalize } from "../../common/canonical/canonicalize.ts";
import { DigestSum, digestWordsOf } from "../../common/digest.ts";
import { typesOf } from "../../common/types/document.ts";
import { Types } from "../../common/types/types.ts";
import { messageOf, usageError } from "../framework/command-error.ts";
import { ChangedClaims, claimOf, orderSources, sectionOf, type Claim } from "./changed-claims.ts";
import { fileLines } from "./file-lines.ts";
import { damaged, headerOf, parseLine, type End, type Header, type SectionDigest } from "./format.ts";

const MAX_VALUE_BYTES = 1_024;
/** As many open leases are kept in memory, to be listed. The file has all of them. */
const KEPT_LEASES = 100;
const END = Buffer.from('{"end":');

interface Contents {
  header: Header;
  types: TypeSet;
  cells: Cell[];
  identities: Pick<IdentitiesChange, "issuers" | "authorities">;
  revokedKeys: Key[];
  /** The first of the leases that were open. */
  leases: Lease[];
  /** What the last line must say, except the digests. */
  found: Omit<End, "claims">;
  end: End | undefined;
  changed: ChangedClaims;
}

/**
 * A backup whose lines were read once. In memory, it has the claims that changed while the backup was made,
 * and what is no claim. All other claims are read from the file each time.
 */
export class Backup {
  readonly path: string;
  readonly header: Header;
  readonly typeSet: TypeSet;
  readonly cells: readonly Cell[];
  readonly identities: Contents["identities"];
  readonly revokedKeys: readonly Key[];
  readonly leases: readonly Lease[];
  readonly found: Contents["found"];
  readonly end: End | undefined;
  readonly #changed: ChangedClaims;
  readonly #types: Types;

  constructor(path: string, contents: Contents) {
    this.path = path;
    this.header = contents.header;
    this.typeSet = contents.types;
    this.cells = contents.cells;
    this.identities = contents.identities;
    this.revokedKeys = contents.revokedKeys;
    this.leases = contents.leases;
    this.found = contents.found;
    this.end = contents.end;
    this.#changed = contents.changed;
    const entries = typesOf(contents.types);
    if (!entries.ok) throw damaged(entries.refusal.detail);
    this.#types = new Types(entries.value);
  }

  /** Applies changes that came after the backup: then its claims are those of a later moment. */
  apply(changes: readonly Change[]): void {
    for (const change of changes) this.#changed.apply(change);
  }

  /** All claims: section by section, and in each in the order of the source ids. */
  async *claims(): AsyncGenerator<Claim, void, undefined> {
    const changed = this.#changed.sections();
    let section = "";
    let waiting: Claim[] = [];
    let at = 0;
    for await (const { bytes, number } of fileLines(this.path)) {
      const line = parseLine(bytes.toString("utf8"), number);
      if ("records_through" in line && line.records_through.source_id === null) {
        yield* waiting.slice(at);
        waiting = [];
        at = 0;
      }
      if (!("record" in line) || line.record.status === "LEASE_CREATING") continue;
      const { record } = line;
      const own = sectionOf(record.cell_id, record.source.type);
      if (own !== section) {
        section = own;
        waiting = changed.get(own) ?? [];
        changed.delete(own);
        at = 0;
      }
      if (this.#changed.has(record)) continue;
      for (; at < waiting.length; at += 1) {
        const next = waiting[at];
        if (next === undefined || orderSources(next.source.id, record.source.id) > 0) break;
        yield next;
      }
      yield claimOf(record);
    }
    // Sections without records.
    for (const claims of changed.values()) yield* claims;
  }

  /** The digests of all claims. Sections without claims are left out. */
  async digests(): Promise<SectionDigest[]> {
    const sums = new Map<string, { cell: string; sourceType: string; sum: DigestSum }>();
    for await (const claim of this.claims()) {
      const key = sectionOf(claim.cell, claim.source.type);
      const entry = sums.get(key) ?? {
        cell: claim.cell,
        sourceType: claim.source.type,
        sum: new DigestSum(),
      };
      sums.set(key, entry);
      entry.sum.add(this.wordsOf(claim));
    }
    return [...sums.values()].map(({ cell, sourceType, sum: { count, hash } }) => ({
      cell_id: cell,
      source_type: sourceType,
      count,
      hash,
    }));
  }

  /** The digest of one claim. */
  wordsOf({ bucket, subject, source, scope }: Claim): ReturnType<typeof digestWordsOf> {
    const entry = this.#types.named("bucket", bucket.type);
    const made = entry?.rule ? canonicalize(entry.rule, bucket.value, MAX_VALUE_BYTES) : undefined;
    const subjectType = this.#types.named("subject", subject.type);
    const sourceType = this.#types.named("source", source.type);
    if (entry === undefined || made?.ok !== true || subjectType === undefined || sourceType === undefined)
      throw damaged(`the claim ${JSON.stringify(bucket)} has a type that the backup does not declare`);
    return digestWordsOf({
      type: entry.number,
      canonical: made.canonical,
      value: bucket.value,
      subject: { type: subjectType.number, id: subject.id },
      source: { type: sourceType.number, id: source.id },
      scope: scope ?? null,
    });
  }

  /** @throws if the last line does not say what the other lines have */
  async check(): Promise<void> {
    const { end, found } = this;
    if (end === undefined) throw incomplete;
    if (end.sha256 !== found.sha256) throw damaged("its SHA-256 differs from that in its last line");
    for (const field of ["checkpoint", "records", "changes", "leases"] as const)
      if (end[field] !== found[field])
        throw damaged(`its last line says ${field} ${end[field]}, but the lines have ${found[field]}`);
    if (JSON.stringify(await this.digests()) !== JSON.stringify(end.claims))
      throw damaged("its claims have other digests than its last line says");
  }
}

const incomplete = damaged("its last line is missing, so it is not complete");

/** Reads all lines once. It does not need the last line: `check` does. */
export async function readBackup(path: string): Promise<Backup> {
  const hash = createHash("sha256");
  const found: Omit<End, "claims"> = { checkpoint: "", records: 0, changes: 0, leases: 0, sha256: "" };
  let header: Header | undefined;
  const contents = {
    types: undefined as TypeSet | undefined,
    cells: [] as Cell[],
    identities: undefined as Contents["identities"] | undefined,
    revokedKeys: [] as Key[],
    leases: [] as Lease[],
    end: undefined as End | undefined,
    changed: new ChangedClaims(),
  };
  let size = 0;
  for await (const { bytes, number, end } of openLines(path)) {
    size = end;
    if (contents.end !== undefined) throw damaged("it has lines after its last line");
    const isEnd = bytes.subarray(0, END.length).equals(END);
    if (!isEnd) hash.update(bytes).update("\n");
    const line = parseLine(bytes.toString("utf8"), number);
    if (header === undefined) {
      header = headerOf(line);
      found.checkpoint = header.checkpoint;
    } else if ("record" in line) found.records += 1;
    else if ("change" in line) {
      found.changes += 1;
      contents.changed.apply(line.change);
    } else if ("lease" in line) {
      found.leases += 1;
      if (contents.leases.length < KEPT_LEASES) contents.leases.push(line.lease);
    } else if ("changes_through" in line) found.checkpoint = line.changes_through;
    else if ("types" in line) contents.types = line.types;
    else if ("cell" in line) contents.cells.push(line.cell);
    else if ("identities" in line) contents.identities = line.identities;
    else if ("revoked_key" in line) contents.revokedKeys.push(line.revoked_key);
    else if ("end" in line) contents.end = line.end;
  }
  const { types, identities } = contents;
  found.sha256 = hash.digest("hex");
  if (header === undefined) throw damaged("it is empty");
  if ((await stat(path)).size !== size) throw damaged("its last line is cut");
  if (types === undefined || identities === undefined) throw incomplete;
  return new Backup(path, { ...contents, header, types, identities, found });
}

async function* openLines(path: string): ReturnType<typeof fileLines> {
  try {
    yield* fileLines(path);
  } catch (error) {
    if (error instanceof Error && "syscall" in error)
      throw usageError(`FILE: ${path} cannot be read: ${messageOf(error)}`);
    throw error;
  }
}
