import type { Cell, Client, Part } from "../../../client/index.ts";
import { countOf } from "../../../text/count-of.ts";
import { commandLine } from "../../../text/shell-word.ts";
import { claimOf, type Claim } from "../../backup/changed-claims.ts";
import { cellsOf, otherCell } from "../../backup/deployment-cells.ts";
import { readBackup } from "../../backup/read-backup.ts";
import { untilAnswered } from "../../backup/until-answered.ts";
import { CommandError, usageError } from "../../framework/command-error.ts";
import type { Context } from "../../framework/context.ts";
import { exitCodes } from "../../framework/exit-codes.ts";
import { fields } from "../../output/table.ts";
import type { Result } from "../../output/result.ts";
import { ChangesSince, newestPositions } from "./changes-since.ts";
import { readShards } from "../../shards/call-growth.ts";
import { isForgetful, weigh, type Evidence, type Findings, type LoggedChanges } from "./evidence.ts";
import { leaseKey, lostHolds } from "./lost-holds.ts";
import { readNames, type Names } from "./names.ts";
import { lineOf, newHeader, writePlan, type PlanLine } from "./plan-file.ts";
import { readLog } from "./read-log.ts";
import { callPart } from "../call-part.ts";
import { LeftHistory } from "./history.ts";
import { requireReconciling } from "./reconciling-shard.ts";

interface PlanOptions {
  backup?: string;
  changes?: string[];
}

/** Ledgers and gaps in the notes. */
const MAX_LISTED = 10;

const PROGRESS_EVERY = 50_000;

/** Compares what a shard has with what it had before it went back in time, and writes a plan. */
export async function planPart(
  context: Context,
  id: string,
  path: string,
  { backup: backupPath, changes: logPaths = [] }: PlanOptions,
): Promise<Result> {
  const { io } = context;
  const client = await context.client();
  const { shard, part, loss, accepted } = await requireReconciling(context, id);
  if (backupPath === undefined && logPaths.length === 0)
    throw usageError("give a backup, or changes that were recorded: --backup FILE, --changes FILE");
  const { shards } = await readShards(context);
  const names = await readNames(io, client, shards);
  const cells = await cellsOf(io, client);
  const logs: LoggedChanges[] = [];
  for (const each of logPaths) logs.push(...(await readLog(each, shard)));
  const forgetful = await forgetfulCells(context, cells, loss.noticed_at);
  const before = await newestPositions(io, client);
  const { present, held } = await readPresent(context, client, cells, names, shard);
  const leased = await lostHolds(io, client, cells, names, shard, held);
  // Read last, so that a name that has changed meanwhile counts as changed.
  const since = new ChangesSince(io, client, names, shard, accepted.position);
  const isWhole = await since.update();
  const evidence: Evidence = {
    present,
    left: new LeftHistory(loss.incarnations, loss.point?.position ?? 0, accepted.incarnation),
    backup: backupPath === undefined ? undefined : await backupOf(context, client, names, shard, backupPath),
    logs,
    seen: loss.seen_points ?? [],
    isDeclared: loss.seen === null,
    forgetful,
    since: isWhole ? new Set([...since.byName.keys(), ...since.uuids]) : undefined,
  };
  const found = weigh(evidence, names.keyOf);
  const lines = [...found.findings.map((finding) => withoutRemoved(lineOf(finding), cells)), ...leased];
  const header = newHeader({
    id: crypto.randomUUID(),
    part: part.id,
    created_at: new Date(io.now()).toISOString(),
    loss_noticed_at: loss.noticed_at,
    through: found.through,
    newest_seen: newestOf(evidence),
    // If the log no longer has all changes, those since the claims were read still count as later ones.
    read_through: isWhole ? since.position : (before.get(shard) ?? 0),
  });
  await writePlan(path, { header, lines });
  return resultOf(path, part, evidence, found, lines, leased.length);
}

/** The cells whose ledgers may have lost what they had seen of the shard. */
async function forgetfulCells(
  context: Context,
  cells: readonly Cell[],
  noticedAt: string,
): Promise<string[]> {
  const forgetful: string[] = [];
  for (const { cell_id: cell, removed_at: removedAt } of cells) {
    if (removedAt !== null) continue;
    const { part } = await untilAnswered(context.io, () =>
      callPart<{ part: Part }>(context, "GET", `ledger-${cell}`),
    );
    if (isForgetful(part, noticedAt)) forgetful.push(cell);
  }
  return forgetful;
}

/** Reads the claims of all cells, because no list is of one shard, and which of them leases hold. */
async function readPresent(
  { io }: Context,
  client: Client,
  cells: readonly Cell[],
  names: Names,
  shard: number,
): Promise<{ present: Claim[]; held: ReadonlySet<string> }> {
  const present: Claim[] = [];
  const held = new Set<string>();
  let count = 0;
  for (const { cell_id: cell, removed_at: removedAt } of cells) {
    if (removedAt !== null) continue;
    for (const sourceType of names.sourceTypes) {
      const { signal } = io;
      const records = client.forCell(cell).records.export({ sourceType: sourceType as never, signal });
      // Another loop over the same export continues behind the last record.
      await untilAnswered(io, async () => {
        for await (const record of records) {
          count += 1;
          if (count % PROGRESS_EVERY === 0) await io.err.write(`${count} records read\n`);
          if (names.shardOf(record.bucket) !== shard) continue;
          if (record.status !== "LEASE_CREATING") present.push(claimOf(record));
          if (record.lease_uuid !== null) held.add(leaseKey(record.lease_uuid, names.keyOf(record.bucket)));
        }
      });
    }
  }
  return { present, held };
}

async function backupOf(
  { io }: Context,
  client: Client,
  names: Names,
  shard: number,
  path: string,
): Promise<Evidence["backup"]> {
  const backup = await readBackup(path);
  await backup.check();
  const other = await otherCell(io, client, backup.header);
  if (other !== undefined)
    throw new CommandError(
      `the backup is of another deployment: cell ${other.cell_id} was registered at another time`,
      exitCodes.conflict,
    );
  const point = backup.points.get(shard);
  if (point === undefined)
    throw new CommandError(`the backup has no position of shard-${shard}`, exitCodes.failed);
  const claims: Claim[] = [];
  for await (const claim of backup.claims()) if (names.shardOf(claim.bucket) === shard) claims.push(claim);
  return { point, claims };
}

/** Cells that are removed, or being removed, have given up what the shard lost (H6). */
function withoutRemoved(line: PlanLine, cells: readonly Cell[]): PlanLine {
  const isHere = (id: string): boolean =>
    cells.some(
      ({ cell_id: cell, state, removed_at: removedAt }) =>
        cell === id && removedAt === null && state !== "REMOVING" && state !== "REMOVED",
    );
  const gone = [line.known?.cell_id, line.now?.cell_id].find((id) => id !== undefined && !isHere(id));
  return gone === undefined
    ? line
    : { ...line, do: "leave", because: `cell ${gone} is removed, or is being removed` };
}

function noteOn({ doubt, base }: Findings): string {
  if (base === "nothing") return "The evidence has nothing of what the shard has lost.";
  return doubt === undefined
    ? "The evidence has every change that anybody had seen."
    : `A person decides about every name, because ${doubt}.`;
}

const newestOf = ({ seen: [newest] }: Evidence): number => newest?.position ?? 0;

function resultOf(
  path: string,
  { id }: Part,
  evidence: Evidence,
  found: Findings,
  lines: readonly PlanLine[],
  lost: number,
): Result {
  const { backup, left, forgetful } = evidence;
  const newestSeen = newestOf(evidence);
  const undecided = lines.filter((line) => line.do === null).length;
  const counts = Object.fromEntries(
    (["claim", "release", "replace", "move"] as const).map((proposal) => [
      proposal,
      lines.filter((line) => line.proposal === proposal && line.do !== "leave").length,
    ]),
  );
  return {
    document: {
      file: path,
      part: id,
      through: found.through,
      newest_seen: newestSeen,
      is_complete: found.isComplete,
      names: lines.length,
      undecided,
      lost_holds: lost,
      proposals: counts,
    },
    text: () =>
      fields([
        ["file", path],
        ["known through", found.through],
        ["newest seen", newestSeen],
        ["to claim", counts["claim"] ?? 0],
        ["to release", counts["release"] ?? 0],
        ["to replace", counts["replace"] ?? 0],
        ["to move", counts["move"] ?? 0],
        ["undecided", undecided],
        ["lost holds", lost],
      ]),
    notes: [
      noteOn(found),
      ...(forgetful.length === 0
        ? []
        : [
            `${countOf(forgetful.length, "ledger")} went back in time, too, so nobody knows how far the ` +
              `shard had got: ${forgetful.slice(0, MAX_LISTED).join(", ")}.`,
          ]),
      ...(backup !== undefined && !left.hasLost(backup.point)
        ? [`The backup is of position ${backup.point.position}, which the shard has not lost.`]
        : []),
      ...found.unused
        .slice(0, MAX_LISTED)
        .map(
          ({ after, through }) =>
            `Changes ${after.position} to ${through.position} were not used: those before them are missing.`,
        ),
      ...(undecided === 0
        ? []
        : [`Decide ${countOf(undecided, "name")}: write the proposal, or "leave", into "do" of its line.`]),
    ],
    nextSteps: [`${commandLine("parts", "apply", id, path)} --dry-run`],
  };
}
