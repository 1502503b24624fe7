import { open, stat } from "node:fs/promises";
import type { Bucket, Source, Subject } from "../../../client/index.ts";
import { escapeControls, toJson } from "../../../text/escape.ts";
import type { Claim } from "../../backup/changed-claims.ts";
import { fileLines } from "../../backup/file-lines.ts";
import { messageOf, usageError } from "../../framework/command-error.ts";
import type { Action, Finding } from "./evidence.ts";

/** A file of another version is refused. */
const PLAN_VERSION = 1;

/** The first line of a plan. */
export interface PlanHeader {
  leasehold_plan: number;
  /** Random: no two plans are the same, even if they say the same about the same loss. */
  id: string;
  /** Such as `shard-3`. */
  part: string;
  created_at: string;
  /** Identifies the loss: the plan is for no other one. */
  loss_noticed_at: string;
  /** The last position for which the evidence says what every name was. */
  through: number;
  /** The largest position that anybody had seen. */
  newest_seen: number;
  /** The plan knows what has happened since the loss was accepted, up to this position. */
  read_through: number;
}

interface PlannedClaim {
  cell_id: string;
  epoch: number;
  subject: Subject;
  source: Source;
  scope?: string;
  /** Only if it is spelled in another way than the name of the line. */
  value?: string;
}

/** One name. A person changes `do` and nothing else. */
export interface PlanLine {
  name: Bucket;
  /** What `apply` carries out. Null: nobody has decided. */
  do: Action | null;
  proposal: Action;
  certain: boolean;
  because: string;
  now: PlannedClaim | null;
  known: PlannedClaim | null;
}

export interface Plan {
  header: PlanHeader;
  lines: readonly PlanLine[];
}

export function lineOf({ bucket, now, known, proposal, isCertain, because }: Finding): PlanLine {
  const planned = (claim: Claim | null): PlannedClaim | null =>
    claim && {
      cell_id: claim.cell,
      epoch: claim.epoch,
      subject: claim.subject,
      source: claim.source,
      ...(claim.scope === undefined ? {} : { scope: claim.scope }),
      ...(claim.bucket.value === bucket.value ? {} : { value: claim.bucket.value }),
    };
  return {
    name: bucket,
    do: isCertain ? proposal : null,
    proposal,
    certain: isCertain,
    because,
    now: planned(now),
    known: planned(known),
  };
}

/** Writes a new file, which only its owner can read, because it has names. */
export async function writePlan(path: string, { header, lines }: Plan): Promise<void> {
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.appendFile(`${toJson({ ...header })}\n`);
      for (const line of lines) await file.appendFile(`${toJson({ ...line })}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    throw usageError(`FILE: ${path} cannot be written: ${messageOf(error)}`);
  }
}

export const newHeader = (fields: Omit<PlanHeader, "leasehold_plan">): PlanHeader => ({
  leasehold_plan: PLAN_VERSION,
  ...fields,
});

/** @throws a usage error that names the line */
export async function readPlan(path: string): Promise<Plan> {
  let header: PlanHeader | undefined;
  const lines: PlanLine[] = [];
  try {
    let size = 0;
    for await (const { bytes, number, end } of fileLines(path)) {
      size = end;
      const at = `${path}, line ${number}`;
      const line = parse(bytes.toString("utf8"), at);
      if (header === undefined) header = headerOf(line, path);
      else lines.push(checked(line as unknown as PlanLine, at));
    }
    if ((await stat(path)).size !== size) throw usageError(`FILE: the last line of ${path} has no line feed`);
  } catch (error) {
    if (error instanceof Error && "syscall" in error)
      throw usageError(`FILE: ${path} cannot be read: ${messageOf(error)}`);
    throw error;
  }
  if (header === undefined) throw usageError(`FILE: ${path} is empty`);
  return { header, lines };
}

function parse(text: string, at: string): Record<string, unknown> {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line === "object" && line !== null && !Array.isArray(line))
      return line as Record<string, unknown>;
  } catch {
    // The error below says where.
  }
  throw usageError(`${at} is not a JSON object`);
}

function headerOf(line: Record<string, unknown>, path: string): PlanHeader {
  if (line["leasehold_plan"] !== PLAN_VERSION)
    throw usageError(`FILE: ${path} is not a plan of version ${PLAN_VERSION}`);
  for (const field of ["id", "part", "loss_noticed_at"])
    if (typeof line[field] !== "string" || line[field] === "")
      throw usageError(`${path}, line 1: ${field} must be a text that is not empty`);
  if (!isPosition(line["read_through"]))
    throw usageError(`${path}, line 1: read_through must be a whole number`);
  return line as unknown as PlanHeader;
}

function checked(line: PlanLine, at: string): PlanLine {
  const { name, proposal, now, known } = line;
  const isWhole =
    typeof name?.type === "string" &&
    typeof name.value === "string" &&
    now !== undefined &&
    known !== undefined;
  if (!isWhole) throw usageError(`${at} is not a line of a plan: it needs name, now and known`);
  for (const [field, claim] of Object.entries({ now, known })) {
    const fault = claim === null ? undefined : faultOf(claim);
    if (fault !== undefined) throw usageError(`${at}: ${field}.${fault}`);
  }
  const isRight = line.do === null || line.do === "leave" || line.do === proposal;
  if (!isRight || !fits(line))
    throw usageError(
      `${at}: do of ${escapeControls(name.value)} must be ${JSON.stringify(proposal)}, "leave" or null`,
    );
  return line;
}

const isPosition = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;

function isRow(value: unknown): boolean {
  const { type, id } = (value ?? {}) as Record<string, unknown>;
  return typeof type === "string" && typeof id === "string";
}

/** What is wrong with a claim that a person may have edited. It completes the name of a field. */
function faultOf({ cell_id: cell, epoch, subject, source, scope, value }: PlannedClaim): string | undefined {
  if (typeof cell !== "string" || !/^[1-9]\d{0,18}$/.test(cell)) return "cell_id must be the id of a cell";
  if (!isPosition(epoch)) return "epoch must be a whole number";
  if (!isRow(subject)) return "subject must have a type and an id";
  if (!isRow(source)) return "source must have a type and an id";
  if (scope !== undefined && typeof scope !== "string") return "scope must be a text";
  return value === undefined || typeof value === "string" ? undefined : "value must be a text";
}

/** Whether the claims that the proposal needs are there. A move has two cells, and a replace has one. */
function fits({ proposal, now, known }: PlanLine): boolean {
  switch (proposal) {
    case "claim":
      return known !== null && now === null;
    case "release":
      return known === null && now !== null;
    case "replace":
      return known !== null && now !== null && known.cell_id === now.cell_id;
    case "move":
      return known !== null && now !== null && known.cell_id !== now.cell_id;
    case "leave":
      return true;
    default:
      return false;
  }
}
