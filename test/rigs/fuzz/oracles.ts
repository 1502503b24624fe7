/** Checks that apply to every answer. */
import type * as z from "zod";
import { errorsOf } from "../../../src/coordinator/api/contract.ts";
import { problem } from "../../../src/coordinator/api/contract/schemas.ts";
import { errorCodes } from "../../../src/coordinator/kernel/refusal.ts";
import { linesIn } from "../../suites/conformance/lines.ts";
import { wrongEffect } from "./effects.ts";
import { isStandalone } from "./hosts.ts";
import { NAME_MARK } from "./pools.ts";
import type { FuzzServer, Received, Sent } from "./server.ts";
import type { StateOnDisk } from "./state.ts";
import { isObject } from "./tree.ts";
import {
  bodyOf,
  isUnfit,
  keyFault,
  keyOf,
  routeOf,
  sentOf,
  whereabouts,
  type FuzzRequest,
} from "./fuzz-request.ts";

/** Escapes control characters, except line feeds. */
export const printable = (text: string): string =>
  text.replaceAll(/(?!\n)\p{Cc}/gu, (character) =>
    character === "\r" ? "" : `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );

/** The request as it was sent, without its keys. */
function shownRequest({ method, target, headers, body }: Sent): string {
  const lines = headers.map(
    ([name, value]) => `${name}: ${name === "authorization" ? "…" : value.slice(0, 200)}`,
  );
  const shown = Buffer.from(body?.subarray(0, 2_000) ?? []).toString("latin1");
  const rest = body !== undefined && body.length > 2_000 ? `… ${body.length} bytes` : "";
  const text = body === undefined ? "" : `\n\n${shown}${rest}`;
  return printable(`${method} ${target.slice(0, 2_000)}\n${lines.join("\n")}${text}`);
}

const shownAnswer = ({ status, text }: Received): string => `${status} ${text.slice(0, 1_500)}`;

/** Sends a request, checks everything that must hold, and returns the answer. */
export async function sendAndCheck(server: FuzzServer, request: FuzzRequest): Promise<Received> {
  const sent = sentOf(server, request);
  const complain = (what: string, received?: Received): Error =>
    new Error(
      [
        what,
        `${request.id} with the key "${request.key}": ${request.notes.join("; ") || "valid"}`,
        shownRequest(sent),
        received === undefined ? "" : shownAnswer(received),
      ].join("\n\n"),
    );
  await untilDone(server);
  const received = await server.send(sent).catch((error: unknown) => {
    throw complain(`no answer: ${error instanceof Error ? error.message : String(error)}`);
  });
  const changes = server.state.changes();
  const wrong =
    wrongAnswer(server, request, sent, received) ??
    wrongEffect(changes, request, received, server) ??
    wrongLog(server);
  if (wrong !== undefined) throw complain(wrong, received);
  await finishShard(server, received);
  return received;
}

const MOST_LOOKS = 100;
const LOOK_AGAIN_MS = 20;

/** Nobody waits more often for the same: a part that a request has stopped does nothing in the background. */
const MOST_WAITS = 3;

/** How often something has stayed. */
const stayed = new WeakMap<StateOnDisk, Map<string, number>>();

/** Waits for what earlier requests have left to do. Its rows would count as those of the next request. */
export async function untilDone({ state }: FuzzServer): Promise<void> {
  const known = stayed.get(state) ?? new Map<string, number>();
  stayed.set(state, known);
  let left: string[] = [];
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    state.changes();
    left = [...unapplied(state), ...untoldAborts(state)].filter(
      (each) => (known.get(each) ?? 0) < MOST_WAITS,
    );
    if (left.length === 0) return;
    await new Promise((resume) => setTimeout(resume, LOOK_AGAIN_MS));
  }
  for (const each of new Set(left)) known.set(each, (known.get(each) ?? 0) + 1);
}

/** The leases whose decisions shards still have to apply, which they do after the answer (C3). */
function unapplied(state: StateOnDisk): string[] {
  const decided = new Set(
    state
      .rows(/^cell-/, "lease")
      .filter((row) => row["state"] !== "GRANTED")
      .map((row) => row["lease"]),
  );
  return state
    .rows(/^shard-/, "hold")
    .filter((row) => decided.has(row["lease"]))
    .map((row) => String(row["lease"]));
}

/** The growths of whose abort not all shards were told, which happens after the answer (G1). */
const untoldAborts = (state: StateOnDisk): string[] =>
  state
    .rows(/^d1$/, "growths")
    .map((row) => String(row["growth"]))
    .filter((growth) => growth.includes('"isAborted":true') && !growth.includes('"isDropped":true'));

/**
 * Finishes a shard that has just accepted its loss, because a shard that is being reconciled refuses begins
 * with a 503 (H6).
 */
export async function finishShard(server: FuzzServer, { text }: Pick<Received, "text">): Promise<void> {
  const [, part] = /"id":"(shard-\d+)","state":"reconciling"/.exec(text) ?? [];
  if (part === undefined) return;
  const request = {
    id: "finishPart",
    key: "operator",
    params: { part },
    body: { reason: "verified" },
  } as const;
  const { status } = await sendAndCheck(server, { ...request, query: [], headers: [], notes: [] });
  if (status !== 200) throw new Error(`${part} was not finished: ${status}`);
}

function wrongAnswer(
  server: FuzzServer,
  request: FuzzRequest,
  sent: Sent,
  received: Received,
): string | undefined {
  const { status } = received;
  if (status >= 500 && !(asksForPosition(request) && isBehind(received))) return "a 5xx";
  if (hasUnavailable(request, received) && !asksForPosition(request)) return "a name is unavailable";
  return (
    (status < 400
      ? wrongSuccess(request, received)
      : (wrongProblem(received) ?? undocumented(request, received))) ??
    leak(server, request, sent, received) ??
    unexpected(request, received)
  );
}

/** Whether the request only wants an answer of a shard that has reached some position (Q3, Q9). */
export function asksForPosition({ query, rawQuery, body }: FuzzRequest): boolean {
  const names = [...query.map(([name]) => name), ...new URLSearchParams(rawQuery).keys()];
  return (
    names.some((name) => name === "min_position" || name === "after") ||
    (isObject(body) && body["min_position"] !== undefined)
  );
}

/** Whether a shard has refused because it has not reached the position that the request wants. */
export const isBehind = ({ status, text }: Pick<Received, "status" | "text">): boolean =>
  status === 503 && /not reached its position|should begin after position/.test(text);

/** Whether a name of several is unavailable. Names and details in the answer have their quotes escaped. */
const hasUnavailable = ({ id }: FuzzRequest, { status, text }: Received): boolean =>
  id === "lookupRoutes" && status === 200 && text.includes('"unavailable":{');

/** Checks that a success fits the contract. */
function wrongSuccess({ id }: FuzzRequest, { status, headers, text }: Received): string | undefined {
  const answer = routeOf(id).responses[status];
  if (answer === undefined) return `${status} is not an answer of this route`;
  const caching = String(headers["cache-control"]);
  if (answer.cached === undefined ? caching !== "no-store" : !mayBeKept(id, caching))
    return `the answer may be kept: ${caching}`;
  if (answer.lines === true) return wrongLines(answer.schema, text);
  if (answer.mediaType !== undefined) return undefined;
  if (headers["content-type"] !== "application/json")
    return `the answer is ${String(headers["content-type"])}`;
  const parsed = answer.schema.safeParse(JSON.parse(text));
  return parsed.success ? undefined : `the answer does not fit its schema: ${parsed.error.message}`;
}

/** Shared caches may only keep what everybody gets. */
const mayBeKept = (id: FuzzRequest["id"], caching: string): boolean =>
  routeOf(id).roles === "anyone"
    ? /^public, max-age=\d+$/.test(caching)
    : /^(?:no-store|private, max-age=\d+(?:, immutable)?)$/.test(caching);

/** Checks that each line fits its schema and that the stream is complete. */
function wrongLines(schema: z.ZodType, text: string): string | undefined {
  const lines = linesIn(text);
  for (const line of lines) {
    const parsed = schema.safeParse(line);
    if (!parsed.success) return `a line does not fit its schema: ${parsed.error.message}`;
  }
  return lines.length > 0 && "end" in Object(lines.at(-1)) ? undefined : "a stream without an end";
}

/** Checks that an error is a problem (RFC 9457) and reveals no internals. */
export function wrongProblem({ status, headers, text }: Received): string | undefined {
  if (headers["content-type"] !== "application/problem+json")
    return `the answer is ${String(headers["content-type"])}`;
  const parsed = problem.safeParse(JSON.parse(text));
  if (!parsed.success) return `not a valid problem: ${parsed.error.message}`;
  const made = parsed.data;
  if (made.status !== status) return `the problem has status ${made.status}`;
  if (made.title !== errorCodes[made.code].title) return "the title belongs to another code";
  if (made.request_id !== headers["x-request-id"]) return "the header has another request id";
  const caching = headers["cache-control"];
  const isAbsent = made.code === "NOT_FOUND" && (made.route ?? made.message) !== undefined;
  if (caching !== "no-store" && !(isAbsent && caching === "private, max-age=1"))
    return `the refusal may be kept: ${String(caching)}`;
  if (status === 400 && !made.field) return "no field is named";
  if (!isWellFormed(made)) return "a lone surrogate in the answer";
  if (/\n\s+at |\.[cm]?[jt]s:\d|node_modules|SQLITE_|\bError:|\[object |undefined/.test(withoutEcho(made)))
    return "the answer reveals internals";
  if (status === 401 && headers["www-authenticate"] === undefined) return "no WWW-Authenticate";
  const waits = made.code === "ABORTED" || status === 429 || status === 503;
  if (waits !== (headers["retry-after"] !== undefined)) return "Retry-After is missing or unexpected";
  return undefined;
}

/** Removes the field name, which may contain the caller's own text, and quoted texts of the caller. */
const withoutEcho = (made: { detail: string; field?: string | undefined }): string =>
  (made.field === undefined ? made.detail : made.detail.replaceAll(made.field, "")).replaceAll(
    /"[^"]*"/g,
    "",
  );

function isWellFormed(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  return (
    typeof value !== "object" ||
    value === null ||
    Object.entries(value).every(([name, each]) => name.isWellFormed() && isWellFormed(each))
  );
}

function undocumented(request: FuzzRequest, { status, text }: Received): string | undefined {
  const { code, reason } = JSON.parse(text) as { code: string; reason?: string };
  if (whereabouts(request) === "elsewhere") return undefined;
  // A body on a GET route is refused in the same way on all routes.
  if (
    routeOf(request.id).method === "GET" &&
    bodyOf(request) !== undefined &&
    (status === 413 || status === 415)
  )
    return undefined;
  // The reasons of these codes are documented for all routes at once.
  const isGeneral = code === "UNAUTHENTICATED" || code === "PERMISSION_DENIED";
  const known = errorsOf(routeOf(request.id)).some(
    (error) =>
      error.code === code &&
      (isGeneral || error.reason === reason) &&
      (status === statusOf(error) || error.status === undefined),
  );
  return known ? undefined : `${status} ${code} ${reason ?? ""} is not documented for this route`;
}

const statusOf = ({ code, status }: { code: keyof typeof errorCodes; status?: number }): number =>
  status ?? errorCodes[code].status;

/** Keys and tokens of requests must not be returned, and secrets never. */
function leak(
  server: FuzzServer,
  request: FuzzRequest,
  { target }: Sent,
  { status, text }: Received,
): string | undefined {
  const own = keyOf(server, request);
  const token = new URLSearchParams(target.split("?")[1]).get("page_token") ?? "";
  const secrets = [
    server.secret,
    ...server.keys.values(),
    ...(own === undefined ? [] : [own]),
    ...(status >= 400 && token.length > 20 ? [token] : []),
  ];
  return secrets.some((secret) => text.includes(secret)) ? "a secret in the answer" : undefined;
}

/** Checks that a request was refused for the first thing that is wrong with it. */
function unexpected(request: FuzzRequest, { status, text }: Received): string | undefined {
  const target = whereabouts(request);
  if (target === "elsewhere")
    return status === 404 || status === 405 ? undefined : "a path of no route was not refused";
  if (target === "refused")
    return status >= 400 && status < 500 ? undefined : "a path of encoded dots was not refused";
  if (target === "anywhere") return undefined;
  const fault = keyFault(request);
  if (fault !== undefined) return status === fault ? undefined : `the key must get a ${fault}`;
  // Node cannot give the body of a GET to the application, so it is ignored.
  if (isStandalone && routeOf(request.id).method === "GET" && bodyOf(request) !== undefined) return undefined;
  if (request.must !== undefined)
    return status === request.must ? undefined : `this must get a ${request.must}`;
  if (isUnfit(request))
    return [400, 413, 415].includes(status) ? undefined : "the schema refuses it, but the server does not";
  if (request.key.startsWith("revoked") && routeOf(request.id).roles !== "anyone" && status < 400)
    return "a revoked key was accepted";
  if (request.notes.length > 0 || status !== 400) return undefined;
  const { field = "" } = JSON.parse(text) as { field?: string };
  return BEYOND_SCHEMAS.test(field) ? undefined : "a valid request was refused";
}

/**
 * Fields whose schemas do not express every rule: canonical names, ids in bytes, ends of ranges, duplicate
 * names, tokens, declared types, the number of shards, certificates, and what fields of an identity exclude.
 */
const BEYOND_SCHEMAS = new RegExp(
  `^(${[
    "body|reason|note|page_token|cursor|value|cell_id|expires_in_s|min_position|shards|subject_(type|id)",
    String.raw`export\[\d+\]\.source_type|certificate|issuer|subject`,
    String.raw`(issuers|authorities)\[\d+\]\.(name|jwks_url|keys|certificate)`,
    String.raw`(issuers|authorities)\[\d+\]\.rules\[\d+\]\.(cell_id|claims|dns|uri)`,
    String.raw`(ranges\[\d+\]\.)?source_id_(gt|lte)`,
    String.raw`(creates|replaces)\[\d+\]\.scope`,
    String.raw`(bucket|source)_type(\[\d+\])?|bucket_types\[\d+\]|bucket(s\[\d+\])?\.(type|value)`,
    String.raw`type|(claim|claims\[\d+\])(\.(type|bucket|value|[a-z]+([_A-Z][A-Za-z]+)?))?`,
    String.raw`(creates|destroys|replaces)\[\d+\]\.(bucket|subject|source)\.type`,
    String.raw`buckets\[\d+\]\.value|names\[\d+\]\.(type|value)`,
    String.raw`(creates|destroys|replaces)\[\d+\](\.bucket(\.value)?|\.(subject|source)\.id)?`,
  ].join("|")})$`,
);

const checkedLines = new WeakMap<FuzzServer, number>();

/** The log has the reason of an operator who declares or accepts a loss, whatever it says. */
const withoutReason = (line: string): string =>
  line.startsWith('{"event":"history_') ? line.replace(/"reason":"(\\.|[^"\\])*"/, "") : line;

/**
 * Checks the log lines since the last call. Lines arrive late, so a line may belong to an earlier request.
 */
export function wrongLog(server: FuzzServer, isFaultless = true): string | undefined {
  const from = checkedLines.get(server) ?? 0;
  checkedLines.set(server, server.logged.length);
  for (const line of server.logged.slice(from)) {
    if (isFaultless && !/^\{"event":"(?!fault)/.test(line)) return `logged: ${line}`;
    if (line.includes("lhk_") || line.includes(server.secret)) return `a secret in the log: ${line}`;
    if (withoutReason(line).toLowerCase().includes(NAME_MARK)) return `a name in the log: ${line}`;
  }
  return undefined;
}
