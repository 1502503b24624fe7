/** What is known of the claims that a shard had before it went back in time (J1, J2). */
import type { Bucket } from "../../../client/index.ts";
import type { Change, HistoryPoint } from "../../../client/api-types.ts";
import type { Claim } from "../../backup/changed-claims.ts";
import { isBefore, type LeftHistory } from "./history.ts";

/** Every change of the shard after one point of its history, up to another: a page of the change feed. */
export interface LoggedChanges {
  after: HistoryPoint;
  through: HistoryPoint;
  /** In the order of their positions. */
  changes: readonly Change[];
}

export interface Evidence {
  /** The claims that the shard has now. */
  present: readonly Claim[];
  left: LeftHistory;
  /** The claims of the shard at a point of its history. */
  backup: { point: HistoryPoint; claims: readonly Claim[] } | undefined;
  logs: readonly LoggedChanges[];
  /** The largest lost position of the shard that anybody had seen; 0 if nobody had. */
  newestSeen: number;
  /** A lost point that somebody had seen, if the shard has noticed its loss itself. */
  seen: HistoryPoint | null;
  /** The cells whose ledgers went back in time as well, so what they had seen may be forgotten. */
  forgetful: readonly string[];
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
  /** The last lost position for which the evidence says what every name was. 0: it says nothing. */
  through: number;
  /** Whether that is everything that anybody had seen. */
  isComplete: boolean;
  /** Where the claims at the first known point come from. */
  base: "rows" | "backup" | "nothing";
  /** Pages of lost changes that continue nothing, because changes before them are missing. */
  unused: readonly LoggedChanges[];
  findings: readonly Finding[];
}

/** The claims of the shard at the last known point of the history that was lost. */
interface Known {
  base: Findings["base"];
  through: number;
  claims: readonly Claim[];
  /** The pages that were used. */
  pages: readonly LoggedChanges[];
  /** The history that was lost is the same as that of the rows at least up to this position. */
  sharedThrough: number;
  /** Whether each claim that was made after `sharedThrough`, and was not lost, is known. */
  hasAllSince: boolean;
}

/** @param keyOf - returns the same text for two spellings of one name */
export function weigh(evidence: Evidence, keyOf: (bucket: Bucket) => string): Findings {
  const { present, newestSeen, forgetful } = evidence;
  const known = knownClaims(evidence);
  const { base, through } = known;
  const used = new Set(known.pages);
  const unused = evidence.logs.filter(
    (page) => isLost(evidence.left, page) && !used.has(page) && page.through.position > through,
  );
  if (base === "nothing") return { through, isComplete: false, base, unused, findings: [] };
  const isComplete = forgetful.length === 0 && newestSeen > 0 && through >= newestSeen;
  const originOf = origins(evidence, known);
  const claims = { now: byName(present, keyOf), known: byName(known.claims, keyOf) };
  const findings: Finding[] = [];
  for (const key of new Set([...claims.known.keys(), ...claims.now.keys()])) {
    const pair = { now: claims.now.get(key) ?? null, known: claims.known.get(key) ?? null };
    const bucket = (pair.known ?? pair.now)?.bucket;
    const proposal = proposalFor(pair);
    if (bucket === undefined || proposal === undefined) continue;
    const origin = pair.now === null ? "lost history" : originOf(pair.now);
    // Whoever claimed a name since then knows its rows, and may have released or moved what it found.
    if (origin === "since" && proposal !== "move") continue;
    const isCertain = isComplete && origin === "lost history";
    findings.push({ bucket, ...pair, proposal, isCertain, because: reason(evidence, through, origin) });
  }
  return { through, isComplete, base, unused, findings };
}

function reason({ newestSeen, forgetful }: Evidence, through: number, origin: Origin): string {
  if (origin === "since")
    return "a cell has claimed it since the shard went back, and the evidence names another cell";
  if (origin === "unknown") return "its claim may have been made since the shard went back";
  const [cell] = forgetful;
  if (cell !== undefined) return `the ledger of cell ${cell} went back in time, too`;
  if (newestSeen === 0) return "nobody remembers which position the shard had reached";
  return through >= newestSeen
    ? `no change after position ${through} was seen by anybody`
    : `changes between positions ${through} and ${newestSeen} are in no source`;
}

/** A page of the history that was lost. Other pages say nothing that the rows don't have. */
const isLost = (left: LeftHistory, { through }: LoggedChanges): boolean => !left.has(through);

/** Starts from the rows and from the backup, and returns what leads further. */
function knownClaims({ present, left, backup, logs, seen }: Evidence): Known {
  const lost = logs
    .filter((page) => isLost(left, page))
    .toSorted((a, b) => a.after.position - b.after.position);
  // A page that begins in the history of the rows and ends in the one that was lost is of both: so both are
  // the same up to its beginning, and it has everything since.
  const starts: { start: HistoryPoint; known: Known }[] = lost
    .filter(({ after }) => left.has(after))
    .map(({ after }) => ({
      start: after,
      known: {
        base: "rows",
        through: 0,
        claims: present.filter(({ epoch }) => epoch <= after.position),
        pages: [],
        sharedThrough: after.position,
        hasAllSince: true,
      },
    }));
  if (backup !== undefined && !left.has(backup.point)) {
    const shared = [backup.point, ...(seen === null ? [] : [seen])].map(({ incarnation }) =>
      left.endOf(incarnation),
    );
    starts.push({
      start: backup.point,
      known: {
        base: "backup",
        through: backup.point.position,
        claims: backup.claims,
        pages: [],
        sharedThrough: Math.max(0, ...shared.map((position) => position ?? 0)),
        hasAllSince: false,
      },
    });
  }
  let best: Known = {
    base: "nothing",
    through: 0,
    claims: [],
    pages: [],
    sharedThrough: 0,
    hasAllSince: false,
  };
  for (const { start, known } of starts) {
    const followed = follow(known, start, lost);
    if (followed.through > best.through) best = followed;
  }
  return best;
}

/** Applies every page that continues without a gap, and is of the same history (J1). */
function follow(known: Known, start: HistoryPoint, lost: readonly LoggedChanges[]): Known {
  const byUuid = new Map(known.claims.map((claim) => [claim.uuid, claim]));
  const pages: LoggedChanges[] = [];
  let at = start;
  // Usually, the first round uses all pages. A page of another consumer may fit only after later ones.
  for (let count = -1; count < pages.length;) {
    count = pages.length;
    for (const page of lost) {
      if (!continues(page, at)) continue;
      for (const change of page.changes) if (change.position > at.position) applyTo(byUuid, change);
      pages.push(page);
      at = page.through;
    }
  }
  return {
    ...known,
    through: pages.length === 0 ? known.through : at.position,
    claims: [...byUuid.values()],
    pages,
  };
}

/** Whether a page has the changes after a point, and is certainly of the history that has the point. */
function continues({ after, through }: LoggedChanges, at: HistoryPoint): boolean {
  if (through.position <= at.position || after.position > at.position) return false;
  const isSame = after.incarnation === at.incarnation && after.position === at.position;
  return isSame || isBefore(at, through);
}

/**
 * Where a claim that the shard has now comes from: from the history that was lost, or from what happened
 * since the shard went back, before the loss was noticed or after it was accepted.
 */
type Origin = "lost history" | "since" | "unknown";

function origins(
  { left, backup }: Evidence,
  { pages, sharedThrough, hasAllSince }: Known,
): (claim: Claim) => Origin {
  const told = new Set(
    pages.flatMap(({ changes }) =>
      changes.flatMap(({ claim, epoch }) => (claim ? [idOf(claim, epoch)] : [])),
    ),
  );
  for (const claim of backup?.claims ?? []) told.add(idOf(claim, claim.epoch));
  return (claim) => {
    const { epoch } = claim;
    if (epoch <= sharedThrough || told.has(idOf(claim, epoch))) return "lost history";
    // What was claimed since the loss was accepted has epochs far above everything that was left (H6).
    return hasAllSince || epoch > left.position ? "since" : "unknown";
  };
}

const idOf = ({ uuid }: { uuid: string }, epoch: number): string => `${uuid} ${epoch}`;

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
