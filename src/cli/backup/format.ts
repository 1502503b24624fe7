import type {
  Cell,
  Change,
  IdentitiesChange,
  Key,
  Lease,
  ClaimRecord,
  TypeSet,
} from "../../users/client/api-types.ts";
import { CommandError, exitCodes } from "../framework/command-error.ts";

/** A file of another version is refused. */
export const FORMAT_VERSION = 1;

/** The first line of a backup. */
export interface Header {
  /** The version of the format. */
  leasehold_backup: number;
  created_at: string;
  /** The file has every change after it. */
  checkpoint: string;
  /** The cells whose records are exported, in this order. */
  cells: readonly Pick<Cell, "cell_id" | "created_at">[];
  /** The source types of these records, in this order. */
  source_types: readonly string[];
}

/** The digest of a cell's claims of one source type. */
export interface SectionDigest {
  cell_id: string;
  source_type: string;
  count: number;
  hash: string;
}

/** The last line. A file without it is not complete. */
export interface End {
  /** The claims are those of this moment of each shard (F6). */
  checkpoint: string;
  records: number;
  changes: number;
  leases: number;
  claims: readonly SectionDigest[];
  /** Of all lines before this one. */
  sha256: string;
}

/**
 * One line of a backup. `…_through` lines are cursors: a backup that was interrupted continues behind the
 * last of them.
 */
export type Line =
  | Header
  | { record: ClaimRecord }
  | { change: Change }
  | { lease: Lease }
  /** All records up to this source id are in the file; null: all of the section. */
  | { records_through: { cell_id: string; source_type: string; source_id: string | null } }
  | { leases_through: { cell_id: string } }
  | { changes_through: string }
  | { types: TypeSet }
  | { cell: Cell }
  | { identities: Pick<IdentitiesChange, "issuers" | "authorities"> }
  | { revoked_key: Key }
  | { end: End };

/** @param number - of the line, for the message */
export function parseLine(text: string, number: number): Line {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line === "object" && line !== null && !Array.isArray(line)) return line as Line;
  } catch {
    // The error below says where.
  }
  throw damaged(`line ${number} is not a JSON object`);
}

/** @throws unless the line is the header of a backup of this version */
export function headerOf(line: Line | undefined): Header {
  if (line === undefined || !("leasehold_backup" in line))
    throw damaged("its first line is not the header of a backup");
  if (line.leasehold_backup !== FORMAT_VERSION)
    throw new CommandError(
      `the backup has version ${line.leasehold_backup} of the format, and this program reads version ` +
        `${FORMAT_VERSION}: use the program of the release that wrote it`,
      exitCodes.failed,
    );
  return line;
}

/** The file has something that no backup has, so it can't be continued either. */
export class DamagedBackupError extends CommandError {}

export const damaged = (what: string): CommandError =>
  new DamagedBackupError(`the backup cannot be used: ${what}`, exitCodes.failed);
