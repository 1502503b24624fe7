/** One generated request to one route. It is printed when it fails, and shrunk. */
import * as fc from "fast-check";
import { routes, type RouteId } from "../../../src/coordinator/api/contract.ts";
import { listLimitsOf } from "../../../src/coordinator/api/contract/lists.ts";
import type { Route } from "../../../src/coordinator/api/contract/route.ts";
import { limitTable } from "../../../src/common/limits.ts";
import {
  DECIDED,
  MOVED,
  NAME_MARK,
  names,
  OUTSTANDING,
  REGISTERED,
  REMOVABLE,
  TRANSFERS,
  uuid,
} from "./pools.ts";
import { goodKeys, orphanKeys, type FuzzServer, type Sent } from "./server.ts";
import { takes, valuesOf } from "./schema.ts";
import { isObject, textOf, type Tree } from "./tree.ts";

export interface FuzzRequest {
  id: RouteId;
  /** The kind of key that it is sent with. */
  key: string;
  /** Flips this bit of the key. */
  flip?: number;
  params: Record<string, string>;
  /** Texts for the path instead of `params`, not encoded further. */
  rawParams?: Record<string, string>;
  query: [string, string][];
  /** Instead of `query`. */
  rawQuery?: string;
  body?: Tree | undefined;
  /** Instead of `body`. */
  bytes?: Uint8Array;
  headers: [string, string][];
  /** What was changed in the request, in words. */
  notes: string[];
  /** The status that it must get because of the change, independent of the server's own schemas. */
  must?: number;
}

export const routeOf = (id: RouteId): Route => routes[id];

const JSON_TYPE = "application/json";

const valid = new Map<RouteId, fc.Arbitrary<FuzzRequest>>();

/**
 * Valid requests: they fit the schemas, the caller may make them, and their values mean something to the
 * server.
 */
export function validRequests(id: RouteId): fc.Arbitrary<FuzzRequest> {
  const known = valid.get(id) ?? makeValidRequests(id);
  valid.set(id, known);
  return known;
}

function makeValidRequests(id: RouteId): fc.Arbitrary<FuzzRequest> {
  const route = routeOf(id);
  const body = route.body === undefined ? fc.constant(undefined) : valuesOf(route.body.schema);
  const parts = fc.record({
    params: valuesOf(route.params),
    query: valuesOf(route.query),
    body: route.body?.required === false ? fc.option(body, { nil: undefined }) : body,
    chosen: fc.nat(59),
    fresh: fc.uuid({ version: 4 }),
  });
  return parts.map(({ params, query, body: first, chosen, fresh }) => {
    const isNew = chosen % 3 > 0 && isObject(first) && first["creates"] !== undefined;
    const given = isNew ? newBatch(first, fresh) : first;
    const texts = isNew
      ? newLease(params as Record<string, string>, fresh, chosen)
      : knownName(knownLease(params as Record<string, string>, chosen), chosen);
    const keys = keysFor(route, texts["cell"]);
    const key = keys[Math.floor(chosen / 6) % keys.length] ?? "none";
    return withSense({
      id,
      key,
      params: texts,
      query: pairsOf(query as Record<string, string | string[]>),
      body: given,
      headers: [],
      notes: [],
    });
  });
}

/** A batch with new names. Most random batches are refused. */
function newBatch(
  { creates = [], allow_missing: allowMissing }: { [name: string]: Tree },
  fresh: string,
): Tree {
  const named = (Array.isArray(creates) ? creates : []).map((op, index): Tree =>
    isObject(op) ? { ...op, bucket: { type: "USERNAMES", value: `${NAME_MARK}-${fresh}-${index}` } } : op,
  );
  return { creates: named, ...(allowMissing === undefined ? {} : { allow_missing: allowMissing }) };
}

const newLease = (params: Record<string, string>, fresh: string, chosen: number): Record<string, string> => ({
  ...params,
  ...(params["cell"] === undefined ? {} : { cell: REGISTERED[chosen % REGISTERED.length] ?? "" }),
  ...(params["uuid"] === undefined ? {} : { uuid: fresh }),
});

/** Often uses an existing lease, because a random cell and id seldom belong together. */
function knownLease(params: Record<string, string>, chosen: number): Record<string, string> {
  if (params["uuid"] === undefined || chosen % 2 === 0) return params;
  const index = chosen % REGISTERED.length;
  return {
    ...params,
    cell: REGISTERED[index] ?? "",
    uuid: uuid(chosen % 3 === 0 ? DECIDED + index : OUTSTANDING + index),
  };
}

/** Often uses a name that is claimed at the start, because a random type and value seldom belong together. */
function knownName(params: Record<string, string>, chosen: number): Record<string, string> {
  if (params["value"] === undefined || chosen % 2 === 0) return params;
  return { ...params, bucket_type: "ROUTES", value: names[chosen % (2 * REGISTERED.length)] ?? "" };
}

const pairsOf = (query: Record<string, string | string[]>): [string, string][] =>
  Object.entries(query).flatMap(([name, value]) =>
    [value].flat().map((each): [string, string] => [name, each]),
  );

/** The kinds of keys that may use a route. */
function keysFor({ roles }: Route, cell: string | undefined): string[] {
  if (roles === "anyone") return ["none"];
  const known = [...goodKeys, ...orphanKeys];
  return known.filter((kind) => roles.some((role) => mayUse(kind, role, cell)));
}

function mayUse(kind: string, role: string, cell: string | undefined): boolean {
  if (role !== "cell" || cell === undefined) return kind.split(" ")[0] === role;
  return kind === `cell ${cell}`;
}

/** Adjusts a body where its validity depends on the key or on another field, which no schema can express. */
function withSense(request: FuzzRequest): FuzzRequest {
  if (request.id === "commitLease" || request.id === "rollbackLease") {
    const { body, key } = request;
    const reason =
      isObject(body) && typeof body["reason"] === "string" && body["reason"].trim() !== ""
        ? body["reason"]
        : "because";
    if (key === "operator") return { ...request, body: { reason } };
    return { ...request, body: body === undefined ? undefined : {} };
  }
  // The limit is no part of the schema, and a long wait would take the time of other requests.
  if (request.id.startsWith("beginLease") && isObject(request.body) && "wait_ms" in request.body)
    return { ...request, body: { ...request.body, wait_ms: Number(request.body["wait_ms"]) % 100 } };
  if (request.id === "approveRemoval" || request.id === "stepRemoval")
    return withRemovableCell(request, REMOVABLE[request.id]);
  if (routeOf(request.id).group === "transfers") return withTransfer(request);
  if (request.id === "listChanges") return { ...request, query: sensibleChanges(request) };
  // Most random ranges end before they begin.
  if (request.id === "digestRecords" && isObject(request.body) && request.params["cell"] !== REGISTERED[0])
    return { ...request, body: { ...request.body, ranges: [{}] } };
  if (request.id === "mintKey" && isObject(request.body)) {
    const { cell_id: cell = "1", ...rest } = request.body;
    return { ...request, body: rest["role"] === "cell" ? { ...rest, cell_id: cell } : rest };
  }
  if (request.id === "changeIdentities" && isObject(request.body))
    return { ...request, body: { ...request.body, issuers: withUsableKeys(request.body["issuers"]) } };
  // A random text is no certificate.
  if (request.id === "explainIdentity" && isObject(request.body)) {
    const { issuer = "https://forge.example", subject = "job" } = request.body;
    return { ...request, body: { issuer, subject } };
  }
  // The others stay for the calls that need one.
  if (request.id === "removeWebhook") return { ...request, params: { id: "1" } };
  if ((request.id === "addWebhook" || request.id === "changeWebhook") && isObject(request.body)) {
    const { events, url, ...settings } = request.body;
    const distinct = Array.isArray(events) ? { events: [...new Set(events)] } : {};
    // Tests are sent to the endpoints that exist at the start, whose address may not be used.
    const address = request.id === "addWebhook" && url !== undefined ? { url } : {};
    const body: Tree = { ...settings, ...distinct, ...address, enabled: false };
    return { ...request, body };
  }
  if (request.id === "classify" && isObject(request.body)) {
    const { claims, claim, ...named } = request.body;
    const given = Array.isArray(claims) ? claims : claim === undefined ? [] : [claim];
    return { ...request, body: given.length === 0 ? named : { claims: given.map(withOneName) } };
  }
  return request;
}

/** Uses a transfer that is ready for the call, and a source that the key may have. */
function withTransfer(request: FuzzRequest): FuzzRequest {
  const { id, key, body } = request;
  const prepared = (TRANSFERS as Partial<Record<RouteId, string>>)[id];
  const params = prepared === undefined ? request.params : { id: `2-${prepared}` };
  const reason: { [name: string]: Tree } = key === "operator" ? { reason: "because" } : {};
  if (!isObject(body)) return { ...request, params, body: key === "operator" ? reason : undefined };
  const { switch_back_of: _, side = "to", ...given } = body;
  if (id === "reportTransfer")
    return { ...request, params, body: { ...given, ...reason, ...(key === "operator" ? { side } : {}) } };
  if (id !== "prepareTransfer" && id !== "planTransfer")
    return { ...request, params, body: { ...given, ...reason } };
  const { from: __, to: ___, reason: ____, ...moved } = given;
  const source = key === "operator" ? { from: "3", ...(id === "planTransfer" ? {} : reason) } : {};
  return { ...request, body: { ...moved, ...source, to: key === "cell 4" ? "1" : "4", scope: MOVED } };
}

/** Most random positions are of shards that don't exist. A cell may only ask for its own changes. */
const sensibleChanges = ({ key, query }: FuzzRequest): [string, string][] =>
  query
    .filter(([name]) => name !== "cell" || !key.startsWith("cell "))
    .map(([name, value]) => [name, name === "after" ? `${value.length % 4}:0` : value]);

/** The public key of RFC 8037, appendix A. Random members of a key are no key. */
const PUBLIC_KEY = { kty: "OKP", crv: "Ed25519", kid: "1", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" };

const withUsableKeys = (issuers: Tree | undefined): Tree =>
  (Array.isArray(issuers) ? issuers : []).map((issuer): Tree =>
    isObject(issuer) && issuer["keys"] !== undefined ? { ...issuer, keys: [PUBLIC_KEY] } : issuer,
  );

/**
 * Often uses a cell that is ready for the call, because a random cell seldom is. An export must not name a
 * source type twice.
 */
function withRemovableCell(request: FuzzRequest, cell: string): FuzzRequest {
  const { body, params } = request;
  if (!isObject(body)) return request;
  const exported = Array.isArray(body["export"]) ? body["export"] : [];
  const isChosen = exported.length === 0 || params["cell"] === REGISTERED[0];
  return {
    ...request,
    params: isChosen ? { ...params, cell } : params,
    body:
      body["export"] === undefined || exported.length === 0
        ? body
        : { ...body, export: isChosen ? [] : exported.slice(0, 1) },
  };
}

/** A claim of a classification must have exactly one name, in any of its forms. */
function withOneName(claim: Tree): Tree {
  const { type, bucket, value, ...fields } = isObject(claim) ? claim : {};
  const [named] = Object.entries(fields);
  return named === undefined
    ? { type: type ?? bucket ?? "ROUTES", value: value ?? "" }
    : { [named[0]]: named[1] };
}

/**
 * The status for a key that is invalid (401) or not allowed (403). Undefined if the key may make the request.
 */
export function keyFault({ id, key, flip, params, rawParams }: FuzzRequest): 401 | 403 | undefined {
  const { roles, path } = routeOf(id);
  if (roles === "anyone") return undefined;
  if (flip !== undefined || !/^(operator|router|cell \d+|revoked .*)$/.test(key)) return 401;
  const [role, cell] = key.replace("revoked ", "").split(" ");
  if (!roles.some((each) => each === role)) return 403;
  const named = path.includes("{cell}") ? (rawParams?.["cell"] ?? params["cell"]) : undefined;
  return role === "cell" && named !== undefined && named !== cell ? 403 : undefined;
}

/** Whether the route's schemas refuse the request. False for everything that they do not check. */
export function isUnfit(request: FuzzRequest): boolean {
  const { params, query, body } = routeOf(request.id);
  if (request.rawParams === undefined && !takes(params, request.params)) return true;
  if (request.rawQuery === undefined && !takes(query, queryOf(request))) return true;
  const bytes = bodyOf(request);
  if (bytes === undefined || bytes.length === 0) return body?.required === true;
  return body !== undefined && !takes(body.schema, jsonOf(bytes));
}

/** The parameters of a route that may be given several times. */
export const repeatableOf = (id: RouteId): string[] => [...listLimitsOf(routeOf(id).query).keys()];

function queryOf({ id, query }: FuzzRequest): Record<string, unknown> {
  const repeatable = repeatableOf(id);
  const values: [string, unknown][] = query.map(([name, value]) => {
    if (repeatable.includes(name))
      return [name, query.filter(([other]) => other === name).map(([, each]) => each)];
    // A parameter that may occur once was given twice, which no schema accepts.
    return [name, query.filter(([other]) => other === name).length > 1 ? null : value];
  });
  return Object.fromEntries(values);
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

export const bodyOf = ({ bytes, body }: FuzzRequest): Uint8Array | undefined =>
  bytes ?? (body === undefined ? undefined : Buffer.from(textOf(body)));

export const BODY_LIMIT = limitTable.bodyBytes.default;
export const BATCH_LIMIT = limitTable.batchOps.default;
export const LOOKUP_LIMIT = limitTable.lookupBuckets.default;
export const DEPTH_LIMIT = limitTable.jsonDepth.default;

export function keyOf(
  server: Pick<FuzzServer, "keys">,
  { key, flip }: Pick<FuzzRequest, "key" | "flip">,
): string | undefined {
  const whole = server.keys.get(key);
  return whole === undefined || flip === undefined ? whole : flipped(whole, flip);
}

/** Changes one letter into another that is allowed in a header. */
export function flipped(text: string, bit: number): string {
  const index = Math.floor(bit / 6) % text.length;
  const code = text.charCodeAt(index);
  const changed = code ^ (1 << (bit % 6));
  const letter = changed > 0x20 && changed < 0x7f ? String.fromCharCode(changed) : code === 0x41 ? "B" : "A";
  return text.slice(0, index) + letter + text.slice(index + 1);
}

export function sentOf(server: Pick<FuzzServer, "keys">, request: FuzzRequest): Sent {
  const { id, headers } = request;
  const body = bodyOf(request);
  const key = keyOf(server, request);
  const chosen = new Set(headers.map(([name]) => name.toLowerCase()));
  const given: [string, string][] = [
    ...(key === undefined || chosen.has("authorization")
      ? []
      : ([["authorization", `Bearer ${key}`]] as [string, string][])),
    ...(body === undefined || chosen.has("content-type")
      ? []
      : ([["content-type", JSON_TYPE]] as [string, string][])),
    ...headers,
  ];
  return {
    method: routeOf(id).method,
    target: targetOf(request),
    headers: given.filter(([, value]) => value !== ABSENT),
    body,
  };
}

/** A header with this value is not sent. */
export const ABSENT = "\u0000absent";

function targetOf({
  id,
  params,
  rawParams,
  query,
  rawQuery,
}: Pick<FuzzRequest, "id" | "params" | "rawParams" | "query" | "rawQuery">): string {
  const { path, rest } = routeOf(id);
  const filled = path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => rawParams?.[name] ?? encodedParam(params[name] ?? "", rest === true),
  );
  const text = rawQuery ?? query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  return text === "" ? filled : `${filled}?${text}`;
}

/**
 * Where a path leads. Dot segments never arrive, because every URL parser resolves them (WHATWG URL, 4.4).
 * The result is a path of no route or, if a parameter takes the rest of the path, of another name. Empty
 * segments are no values either. Encoded dots arrive as they are, and no other parameter may be that.
 */
export function whereabouts(request: FuzzRequest): "here" | "elsewhere" | "refused" | "anywhere" {
  const { rest, path: pattern } = routeOf(request.id);
  const [path = ""] = targetOf(request).split("?");
  const segments = path.split("/").slice(1);
  const fixed = pattern.split("/").length - (rest === true ? 2 : 1);
  const hasDots = segments.some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
  if (hasDots && rest === true) return "anywhere";
  if (hasDots) return segments.some((segment) => /^\.{1,2}$/.test(segment)) ? "elsewhere" : "refused";
  return pattern !== "/" && segments.slice(0, fixed).includes("") ? "elsewhere" : "here";
}

/** Encodes the slashes of a name or not, depending on its length. Both must mean the same. */
const encodedParam = (value: string, rest: boolean): string =>
  rest && value.length % 2 === 0 ? encode(value).replaceAll("%2F", "/") : encode(value);

/** Encodes text. A lone surrogate has no percent-encoding, so it becomes its WTF-8 bytes. */
const encode = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text).replaceAll(/^\.{1,2}$/g, (dots) => dots.replaceAll(".", "%2E"))
    : "%ED%A0%80";
