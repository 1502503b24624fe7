/** What is known of the claims that a shard had before it went back in time (J1, J2, J4). */
import type { Bucket } from "../../../client/index.ts";
import type { Change, HistoryPoint, Part } from "../../../client/api-types.ts";
import type { Claim } from "../../backup/changed-claims.ts";
import { isBefore, type LeftHistory } from "./history.ts";

/** Every change of one incarnation after a point of its history, up to another: a page of the feed (F4). */
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
  /** The lost points that somebody had seen, the largest position first. */
  seen: readonly HistoryPoint[];
  /** An operator has declared the loss, so nobody has told a point that was lost. */
  isDeclared: boolean;
  /** The cells whose ledgers went back in time as well, so what they had seen may be forgotten. */
  forgetful: readonly string[];
  /**
   * The names that have changed since the loss was accepted, and the UUIDs of their claims. Undefined: the
   * shard's log no longer has all of these changes.
   */
  since: ReadonlySet<string> | undefined;
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
  /** Whether that is everything that anybody had seen, and the rest is known as well. */
  isComplete: boolean;
  /** Why nothing is certain. Undefined if something may be. */
  doubt: string | undefined;
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
  /** Points that are certainly of this history. */
  points: readonly HistoryPoint[];
  /** The last position that this history and the one that was left share. Undefined: nobody can tell. */
  sharedThrough: number | undefined;
}

/** The deployment tells no more points that somebody had seen, so others may be missing. */
const MAX_SEEN_POINTS = 100;

/** @param keyOf - returns the same text for two spellings of one name */
export function weigh(evidence: Evidence, keyOf: (bucket: Bucket) => string): Findings {
  const { present, left } = evidence;
  const known = knownClaims(evidence);
  const { base, through } = known;
  const used = new Set(known.pages);
  const unused = evidence.logs.filter(
    (page) => left.hasLost(page.through) && !used.has(page) && page.through.position > through,
  );
  const doubt = doubtOf(evidence, known);
  const isComplete = doubt === undefined;
  if (base === "nothing") return { through, isComplete, doubt, base, unused, findings: [] };
  const doubtOn = doubtsOf(evidence, known);
  const claims = { now: byName(present, keyOf), known: byName(known.claims, keyOf) };
  const findings: Finding[] = [];
  for (const key of new Set([...claims.known.keys(), ...claims.now.keys()])) {
    const pair = { now: claims.now.get(key) ?? null, known: claims.known.get(key) ?? null };
    const bucket = (pair.known ?? pair.now)?.bucket;
    const proposal = proposalFor(pair);
    if (bucket === undefined || proposal === undefined) continue;
    // Whoever claimed a name since then knows its rows, and may have released or moved what it found.
    if (proposal !== "move" && isNewer(evidence, known, pair)) continue;
    const because = doubtOn(key, pair) ?? doubt;
    findings.push({
      bucket,
      ...pair,
      proposal,
      isCertain: because === undefined,
      because: because ?? `no change after position ${through} was seen by anybody`,
    });
  }
  return { through, isComplete, doubt, base, unused, findings };
}

/** A ledger that has accepted a loss within this time before the shard's may have forgotten positions. */
const FORGETFUL_MS = 7 * 24 * 3_600_000;

/**
 * Whether a ledger may have lost what it had seen of the shard (J2). A ledger that accepted a loss long
 * before has seen newer positions since.
 *
 * @param noticedAt - when the loss of the shard was noticed
 */
export function isForgetful(
  { state, accepted_at: acceptedAt }: Pick<Part, "state" | "accepted_at">,
  noticedAt: string,
): boolean {
  if (state === "lost") return true;
  return acceptedAt !== null && Date.parse(acceptedAt) > Date.parse(noticedAt) - FORGETFUL_MS;
}

type Pair = Pick<Finding, "now" | "known">;

/** Whether a claim was made after the shard went back, or after the claim that the evidence has. */
function isNewer(
  { left }: Evidence,
  { sharedThrough = left.position }: Known,
  { now, known }: Pair,
): boolean {
  return now !== null && (now.epoch > sharedThrough || (known !== null && now.epoch >= known.epoch));
}

/** Why nothing is certain (J2). */
function doubtOf({ seen, isDeclared, forgetful, since }: Evidence, known: Known): string | undefined {
  const { through, points, sharedThrough } = known;
  const [cell] = forgetful;
  if (cell !== undefined) return `the ledger of cell ${cell} went back in time, too`;
  if (isDeclared) return "an operator has declared the loss, so nobody knows how far the shard had got";
  const [newest] = seen;
  if (newest === undefined) return "nobody remembers which position the shard had reached";
  if (through < newest.position)
    return `changes between positions ${through} and ${newest.position} are in no source`;
  const other = seen.find((point) => !points.some((each) => isBefore(point, each)));
  if (other !== undefined)
    return (
      `somebody had seen position ${other.position} of incarnation ${other.incarnation}, which may be of ` +
      "another history"
    );
  if (seen.length >= MAX_SEEN_POINTS) return "the deployment does not tell all points that were seen";
  if (sharedThrough === undefined) return "no source says where the history that was lost begins";
  if (since === undefined) return "the shard's log no longer has all changes since the loss was accepted";
  return undefined;
}

/** Why a person decides about one name (J4). */
function doubtsOf(evidence: Evidence, known: Known): (key: string, pair: Pair) => string | undefined {
  const { left, since } = evidence;
  const { sharedThrough = 0, pages } = known;
  const released = new Set(
    pages.flatMap(({ changes }) =>
      changes.flatMap(({ event, claim }) => (event === "released" && claim ? [claim.uuid] : [])),
    ),
  );
  // What the shard did before its loss was noticed has left no other trace than its rows.
  const hasGoneOn = left.position > sharedThrough;
  return (key, pair) => {
    if (isNewer(evidence, known, pair))
      return "a cell has claimed it since the shard went back, and the evidence names another cell";
    const names = [key, pair.now?.uuid, pair.known?.uuid];
    if (names.some((name) => name !== undefined && since?.has(name)))
      return "it has changed since the loss was accepted";
    if (!hasGoneOn) return undefined;
    // The ledger of a later claim had seen a lost position, so the shard would have noticed its messages.
    if (pair.known !== null && pair.known.epoch <= sharedThrough)
      return "its cell may have changed it after the shard went back, before the loss was noticed";
    if (pair.known === null && pair.now !== null && !released.has(pair.now.uuid))
      return "its claim may have been made after the shard went back, before the loss was noticed";
    return undefined;
  };
}

/** Starts from the rows and from the backup, and returns what leads further. */
function knownClaims({ present, left, backup, logs }: Evidence): Known {
  const lost = logs
    .filter(({ through }) => left.hasLost(through))
    .toSorted((a, b) => a.after.position - b.after.position);
  // A page that begins in the history of the rows and ends in the one that was lost is of both: so both are
  // the same up to its beginning, and it has everything since.
  const starts: { start: HistoryPoint; known: Known }[] = lost
    .filter(({ after }) => left.has(after))
    .map(({ after, through }) => ({
      start: after,
      known: {
        ...NOTHING,
        base: "rows",
        claims: present.filter(({ epoch }) => epoch <= after.position),
        // The page has one incarnation. If it is not in the rows, both part at the beginning of the page.
        sharedThrough: left.endOf(through.incarnation) ?? after.position,
      },
    }));
  if (backup !== undefined && left.hasLost(backup.point)) {
    const { point, claims } = backup;
    starts.push({
      start: point,
      known: {
        ...NOTHING,
        base: "backup",
        through: point.position,
        claims,
        points: [point],
        sharedThrough: left.endOf(point.incarnation),
      },
    });
  }
  let best: Known = NOTHING;
  for (const { start, known } of starts) {
    const followed = follow(known, start, lost);
    if (followed.through > best.through) best = followed;
  }
  return best;
}

const NOTHING: Known = {
  base: "nothing",
  through: 0,
  claims: [],
  pages: [],
  points: [],
  sharedThrough: undefined,
};

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
    points: [...known.points, ...pages.flatMap(({ after, through }) => [after, through])],
  };
}

/** Whether a page has the changes after a point, and is certainly of the history that has the point. */
function continues({ after, through }: LoggedChanges, at: HistoryPoint): boolean {
  if (through.position <= at.position || after.position > at.position) return false;
  const isSame = after.incarnation === at.incarnation && after.position === at.position;
  return isSame || isBefore(at, through);
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
function proposalFor({ now, known }: Pair): Finding["proposal"] | undefined {
  if (known === null) return now === null ? undefined : "release";
  if (now === null) return "claim";
  if (now.cell !== known.cell) return "move";
  return factsOf(now) === factsOf(known) ? undefined : "replace";
}

/** Two claims of one cell with the same facts need no change. */
export const factsOf = ({
  bucket,
  subject,
  source,
  scope,
}: Pick<Claim, "bucket" | "subject" | "source" | "scope">): string =>
  JSON.stringify([bucket.value, subject.type, subject.id, source.type, source.id, scope ?? null]);
