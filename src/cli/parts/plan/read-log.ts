/** Reads what `leasehold watch --changes --jsonl` has written. */
import type { ChangesRange } from "../../../client/index.ts";
import type { Change } from "../../../client/api-types.ts";
import { fileLines } from "../../backup/file-lines.ts";
import { messageOf, usageError } from "../../framework/command-error.ts";
import type { LoggedChanges } from "./evidence.ts";

/** A line behind the changes of a page. */
export interface CheckpointLine {
  checkpoint: string;
  /** What the page has of each shard from which it has read anything. */
  ranges?: readonly ChangesRange[];
  /** The watch began here, so changes before it may be missing. */
  is_start?: true;
  /** The number of changes of the page. So a file shows if another program has written to it meanwhile. */
  count?: number;
  /** Changes of other cells or types were left out. */
  is_filtered?: true;
}

/** Returns the pages that have something of one shard. */
export async function readLog(path: string, shard: number): Promise<LoggedChanges[]> {
  const pages: LoggedChanges[] = [];
  let hasStarted = false;
  let changes: Change[] = [];
  let count = 0;
  try {
    for await (const { bytes, number } of fileLines(path)) {
      const line = parse(path, bytes.toString("utf8"), number);
      if (!("checkpoint" in line)) {
        count += 1;
        if (line.shard === shard) changes.push(line);
        continue;
      }
      if (line.is_filtered === true)
        throw usageError(
          `${path} does not have all changes: record without --cell and --type, and with the key of an ` +
            "operator or a viewer",
        );
      const range = line.ranges?.find((each) => each.shard === shard);
      // Without a start, the first lines of a page may be missing. With other lines between its own, a page
      // proves nothing. The plan then shows a gap.
      const isIntact = hasStarted && line.count === count;
      if (range !== undefined && isIntact && changes.every((change) => isWithin(range, change)))
        pages.push({ after: range.after, through: range.through, changes });
      hasStarted = true;
      changes = [];
      count = 0;
    }
  } catch (error) {
    if (error instanceof Error && "syscall" in error)
      throw usageError(`${path} cannot be read: ${messageOf(error)}`);
    throw error;
  }
  return pages;
}

const isWithin = ({ after, through }: ChangesRange, { position }: Change): boolean =>
  position > after.position && position <= through.position;

function parse(path: string, text: string, number: number): Change | CheckpointLine {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line === "object" && line !== null && ("checkpoint" in line || "position" in line))
      return line as Change | CheckpointLine;
  } catch {
    // The error below says where.
  }
  throw usageError(`${path}, line ${number} is not of leasehold watch --changes --jsonl`);
}
