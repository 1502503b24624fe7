import { unknown, type Refused, type Unknown } from "./answer.ts";
import type { Conflict } from "./api-types.ts";

interface Headers {
  get(name: string): string | null;
}

/**
 * Reads an answer that is no success. A refusal is a problem document with a code and a status below 500.
 * Answers of proxies, and every 5xx, leave the outcome unknown.
 */
export function readProblem(status: number, headers: Headers, text: string): Refused | Unknown {
  const isProblem = (headers.get("content-type") ?? "").startsWith("application/problem+json");
  return answerOfProblem(status, parsed(text), isProblem, headers);
}

/** Reads a problem, with or without headers: an export has one as its last line. */
export function answerOfProblem(
  status: number,
  problem: Record<string, unknown>,
  isProblem = true,
  headers?: Headers,
): Refused | Unknown {
  const requestId = textOf(problem["request_id"]) ?? headers?.get("x-request-id") ?? undefined;
  const retryAfterMs = headers === undefined ? waitOf(problem["retry_after_ms"]) : retryAfterOf(headers);
  const common = {
    status,
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
  const code = textOf(problem["code"]);
  const detail = textOf(problem["detail"]);
  if (!isProblem || status < 400 || status >= 500 || code === undefined) {
    const why = code === "DEADLINE_EXCEEDED" ? "timeout" : "unavailable";
    return unknown(`HTTP ${status}: ${(isProblem ? detail : undefined) ?? "no problem document"}`, {
      why,
      ...common,
    });
  }
  const reason = textOf(problem["reason"]);
  const field = textOf(problem["field"]);
  return {
    kind: "refused",
    code,
    detail: detail ?? "",
    conflicts: conflictsOf(problem["conflicts"]),
    retryable: problem["retryable"] === true,
    outcomeKnown: true,
    ...common,
    ...(reason === undefined ? {} : { reason }),
    ...(field === undefined ? {} : { field }),
    ...(problem["route"] === undefined ? {} : { route: problem["route"] }),
  };
}

/** `Retry-After` holds seconds or a date. A proxy may send either. */
function retryAfterOf(headers: Headers): number | undefined {
  const given = headers.get("retry-after");
  if (given === null || given === "") return undefined;
  const seconds = Number(given);
  const waitMs = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(given) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined;
}

/** For a problem without headers of its own. */
const waitOf = (given: unknown): number | undefined =>
  typeof given === "number" && given >= 0 ? given : undefined;

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** Ignores malformed conflicts. The refusal itself still counts. */
const conflictsOf = (given: unknown): Conflict[] => (Array.isArray(given) ? given.filter(isConflict) : []);

function isConflict(given: unknown): given is Conflict {
  const { list, index, kind, bucket } = (given ?? {}) as Record<string, unknown>;
  const { type, value } = (bucket ?? {}) as Record<string, unknown>;
  const isListed = list === "creates" || list === "destroys" || list === "replaces";
  return (
    isListed &&
    typeof index === "number" &&
    typeof kind === "string" &&
    typeof type === "string" &&
    typeof value === "string"
  );
}

function parsed(text: string): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? (json as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The least that an answer must hold: the kind of each field that is always present. */
export type Shape =
  | "string"
  | "number"
  | "boolean"
  | "any"
  | readonly [Shape]
  | { readonly [field: string]: Shape };

/** Throws a `TypeError` that names the path where `json` differs from `shape`. Extra fields are allowed. */
export function checkShape(json: unknown, shape: Shape, path = "the answer"): void {
  if (shape === "any") return;
  if (typeof shape === "string") {
    if (typeof json !== shape) throw new TypeError(`${path} is not a ${shape}`);
  } else if (isList(shape)) {
    if (!Array.isArray(json)) throw new TypeError(`${path} is not a list`);
    json.forEach((each, index) => checkShape(each, shape[0], `${path}[${index}]`));
  } else {
    if (typeof json !== "object" || json === null) throw new TypeError(`${path} is not an object`);
    for (const [field, each] of Object.entries(shape))
      checkShape((json as Record<string, unknown>)[field], each, `${path}.${field}`);
  }
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);
