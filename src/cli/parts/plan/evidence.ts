/** What is known of the claims that a shard had before it went back in time (J1, J2). */
import type { Bucket } from "../../../client/index.ts";
import type { Change } from "../../../client/api-types.ts";
import type { Claim } from "../../backup/changed-claims.ts";

/** Every change of the shard after one position, up to another. */
export interface LoggedChanges {
  from: number;
  through: number;
  /** In the order of their positions. */
  changes: readonly Change[];
}

export interface Evidence {
  /** The claims that the shard has now. */
  present: readonly Claim[];
  /** The position of the rows that were left of the shard. */
  left: number;
  /** The claims of the shard at a position. */
  backup: { position: number; claims: readonly Claim[] } | undefined;
  logs: readonly LoggedChanges[];
  /** The largest position of the shard that anybody had seen. */
  newestSeen: number;
}

/**
 * What is to be done with a name. `claim`: it is free, and a cell had it. `release`: nobody had it any more.
 * `replace`: the same cell had it, for another row. `move`: another cell had it. `leave`: nothing.
 */
export type Action = "claim" | "release" | "replace" | "move" | "leave";

export interface Finding {
  bucket: Bucket;
  /** The claim now. Null: the name is free. */
  now: Claim | null;
  /** The claim at the last known position. Null: the name was free. */
  known: Claim | null;
  proposal: Exclude<Action, "leave">;
  /** False: a person decides. */
  isCertain: boolean;
  because: string;
}

export interface Findings {
  /** The last position for which the evidence says what every name was. */
  through: number;
  /** Whether that is everything that anybody had seen. */
  isComplete: boolean;
  /** Where the claims at the first known position come from. */
  base: "rows" | "backup";
  /** Logs that continue nothing, because changes before them are missing. */
  unused: readonly LoggedChanges[];
  findings: readonly Finding[];
}

/** @param keyOf - returns the same text for two spellings of one name */
export function weigh(evidence: Evidence, keyOf: (bucket: Bucket) => string): Findings {
  const { present, left, backup, newestSeen } = evidence;
  // What was claimed since the loss was accepted has epochs far above everything that was seen (H6).
  const isNew = ({ epoch }: Claim): boolean => epoch > Math.max(left, newestSeen);
  const isBackupNewer = backup !== undefined && backup.position > left;
  const base = isBackupNewer ? backup.claims : present.filter((claim) => !isNew(claim));
  const { known, through, unused } = follow(base, isBackupNewer ? backup.position : left, evidence.logs);
  const isComplete = through >= newestSeen;
  const claims = { now: byName(present, keyOf), known: byName(known, keyOf) };
  const findings: Finding[] = [];
  for (const key of new Set([...claims.known.keys(), ...claims.now.keys()])) {
    const pair = { now: claims.now.get(key) ?? null, known: claims.known.get(key) ?? null };
    const bucket = (pair.known ?? pair.now)?.bucket;
    const proposal = proposalFor(pair);
    if (bucket === undefined || proposal === undefined) continue;
    const isVerified = pair.now !== null && isNew(pair.now);
    // A verification may have released or moved what it found, and it knows its rows.
    if (isVerified && proposal !== "move") continue;
    findings.push({
      bucket,
      ...pair,
      proposal,
      isCertain: isComplete && !isVerified,
      because: isVerified
        ? "a verification has claimed it since the loss was accepted, and the evidence names another cell"
        : isComplete
          ? `no change after position ${through} was seen by anybody`
          : `changes between positions ${through} and ${newestSeen} are in no source`,
    });
  }
  return { through, isComplete, base: isBackupNewer ? "backup" : "rows", unused, findings };
}

/** Applies every log that continues without a gap. */
function follow(
  base: readonly Claim[],
  position: number,
  logs: readonly LoggedChanges[],
): { known: Claim[]; through: number; unused: LoggedChanges[] } {
  const byUuid = new Map(base.map((claim) => [claim.uuid, claim]));
  let through = position;
  let left = [...logs];
  for (;;) {
    const next = left.find((log) => log.from <= through && log.through > through);
    if (next === undefined) break;
    for (const change of next.changes)
      if (change.position > through && change.position <= next.through) applyTo(byUuid, change);
    through = next.through;
    left = left.filter((log) => log.through > through);
  }
  return { known: [...byUuid.values()], through, unused: left.filter((log) => log.through > through) };
}

function applyTo(byUuid: Map<string, Claim>, { event, cell_id: cell, epoch, claim }: Change): void {
  if (claim === undefined) return;
  const { uuid, bucket, subject, source, scope } = claim;
  // Details are erased only from what has ended (K5).
  if (event === "released" || bucket === undefined || subject === undefined || source === undefined)
    byUuid.delete(uuid);
  else byUuid.set(uuid, { cell, uuid, epoch, bucket, subject, source, ...(scope && { scope }) });
}

const byName = (claims: readonly Claim[], keyOf: (bucket: Bucket) => string): Map<string, Claim> =>
  new Map(claims.map((claim) => [keyOf(claim.bucket), claim]));

/** Undefined: the name is as it was. */
function proposalFor({ now, known }: Pick<Finding, "now" | "known">): Finding["proposal"] | undefined {
  if (known === null) return now === null ? undefined : "release";
  if (now === null) return "claim";
  if (now.cell !== known.cell) return "move";
  return factsOf(now) === factsOf(known) ? undefined : "replace";
}

const factsOf = ({ bucket, subject, source, scope }: Claim): string =>
  JSON.stringify([bucket, subject, source, scope]);
