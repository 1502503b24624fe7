/** Reads the JSON of the coordinator. Each function returns undefined when a body is not as expected. */
import type { CellAddress } from "./routes.ts";
import type { CellList, ReportPage, SourceAnswer, SourceFailure } from "./source.ts";

/** A longer time to wait is cut. */
export const MAX_RETRY_AFTER_MS = 60_000;

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const isHash = (value: unknown): value is string => typeof value === "string" && /^[0-9a-f]{16}$/.test(value);

const isText = (value: unknown): value is string => typeof value === "string";

function readCell(value: unknown): CellAddress | undefined {
  if (!isFields(value)) return undefined;
  const { id, address } = value;
  return isText(id) && id !== "" && isText(address) ? { id, address } : undefined;
}

function readFacts(body: Fields) {
  const { key, shard, position, settled, age_ms: ageMs } = body;
  if (!isHash(key) || !isCount(shard) || !isCount(position)) return undefined;
  if (typeof settled !== "boolean" || typeof ageMs !== "number" || !(ageMs >= 0)) return undefined;
  return { key, shard, position, settled, ageMs };
}

/** Reads the body of a 200. */
export function readFound(body: unknown): SourceAnswer | undefined {
  if (!isFields(body)) return undefined;
  const facts = readFacts(body);
  const cell = readCell(body["cell"]);
  const { epoch } = body;
  // Without an epoch, nothing orders the owners of the name. Cell keys don't get it for other cells' names.
  if (facts === undefined || cell === undefined || !isCount(epoch)) return undefined;
  return { kind: "found", cell, epoch, ...facts };
}

/** Reads the body of a 404. Without its `route`, it may be about anything. */
export function readNone(body: unknown): SourceAnswer | undefined {
  const route = isFields(body) ? body["route"] : undefined;
  const facts = isFields(route) ? readFacts(route) : undefined;
  return facts && { kind: "none", ...facts };
}

/** Reads the results of a batch, which must be as many as were asked for. */
export function readResults(body: unknown, count: number): SourceAnswer[] | undefined {
  const results = isFields(body) ? body["results"] : undefined;
  if (!Array.isArray(results) || results.length !== count) return undefined;
  const answers = results.map((result: unknown) => {
    if (!isFields(result)) return undefined;
    if (result["unavailable"] !== undefined) return readUnavailable(result);
    if (result["found"] === true) return readFound(result);
    // Anything else must not look like a name that does not exist.
    return result["found"] === false ? readNone({ route: result }) : undefined;
  });
  return answers.every((each) => each !== undefined) ? answers : undefined;
}

/** Reads the result of a name that is unavailable while others are answered. */
function readUnavailable({ shard, unavailable }: Fields): SourceFailure | undefined {
  if (!isFields(unavailable) || !isCount(shard)) return undefined;
  const { code, reason, field, retry_after_ms: retryAfterMs } = unavailable;
  return {
    kind: "failed",
    detail: [`shard ${shard}`, ...constantsOf(code, reason)].join(" "),
    shard,
    ...(field === "min_position" ? { isBehind: true } : {}),
    ...(isCount(retryAfterMs) ? { retryAfterMs: Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) } : {}),
  };
}

/** The constants of a problem, for logs. Anything else may have a name in it. */
export const constantsOf = (code: unknown, reason: unknown): string[] =>
  [code, reason].filter((each): each is string => isText(each) && /^[A-Z_]{1,64}$/.test(each));

export function readReport(body: unknown): ReportPage | undefined {
  if (!isFields(body)) return undefined;
  const { shard, after, through, held, has_more: hasMore, age_ms: ageMs } = body;
  if (!isCount(shard) || !isCount(after) || !isCount(through) || !Array.isArray(held)) return undefined;
  if (typeof hasMore !== "boolean" || typeof ageMs !== "number" || !(ageMs >= 0)) return undefined;
  if (!held.every(isRow)) return undefined;
  const rows = held.map(([distance, keys]) => [after + distance, keys] as const);
  return { kind: "page", shard, after, through, held: rows, hasMore, ageMs };
}

function isRow(row: unknown): row is [number, string[]] {
  if (!Array.isArray(row) || row.length !== 2) return false;
  const [distance, keys] = row as unknown[];
  return isCount(distance) && Array.isArray(keys) && keys.every(isHash);
}

export function readCells(body: unknown): CellList | undefined {
  if (!isFields(body)) return undefined;
  const { cells: list, age_ms: copyAgeMs } = body;
  if (!Array.isArray(list) || !isCount(copyAgeMs)) return undefined;
  const cells = list.map(readCell);
  return cells.every((each) => each !== undefined)
    ? { kind: "cells", cells, ageMs: 0, copyAgeMs }
    : undefined;
}
