import { isCellId } from "../../../auth/principal.ts";
import type { Cell } from "../../../kernel/directory/messages.ts";
import type { Limits } from "../../../../common/limits.ts";
import type { BucketKey } from "../../../kernel/messages.ts";
import { ok, refused, type Result } from "../../../kernel/refusal.ts";
import { invalid, keyOf, inParts } from "../../../api/batch.ts";
import { CLAIM_FIELDS, type ClassifyClaim, classifyRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { DirectoryView } from "../../../isolate/directory-copy.ts";
import type { Handlers } from "../../../api/handler.ts";
import { CELLS_MAX_AGE_S, kept, NOT_FOUND_MAX_AGE_S } from "../../../api/http-answer.ts";
import { askShards, ownersOf, type Looked } from "../../../isolate/lookup.ts";
import { withFailure } from "../../../isolate/reach.ts";
import type { WaitUntil } from "../../../runtime.ts";

/** What a type without claims asks for, with the names that GitLab's router used before. */
const CELL_TYPES: Readonly<Record<string, "first" | "prefix" | "id">> = {
  FIRST_CELL: "first",
  FirstCell: "first",
  SESSION_PREFIX: "prefix",
  SessionPrefix: "prefix",
  CELL_ID: "id",
  CellId: "id",
};

/** The value of an enum of a protobuf that was not set. */
const UNSPECIFIED = "UNSPECIFIED";

const WANTED =
  "must be FIRST_CELL, or SESSION_PREFIX, CELL_ID or a bucket type with a `value`, unless there are claims";

/** A claim of the request, with the fields of its type and of its value. */
interface Asked {
  given: ClassifyClaim | null;
  type: string;
  typeField: string;
  value: string;
}

const classifyHandlers: Handlers<typeof classifyRoutes> = {
  async classify({ deployment, waitUntil, body: { type = UNSPECIFIED, value, claim, claims = [] } }) {
    const kind = Object.hasOwn(CELL_TYPES, type) ? CELL_TYPES[type] : undefined;
    const list = claims.length > 0 ? claims : claim === undefined ? [] : [claim];
    if (list.length > 0) {
      // With a type that names a cell, it would not be clear which of the two decides.
      if (kind !== undefined) return withMessage(invalid("type", `cannot be ${type} beside claims`));
      const asked = claimsOf(list, claims.length > 0);
      return asked.ok ? classifyClaims(deployment, waitUntil, asked.value) : withMessage(asked);
    }
    if (kind !== undefined) return classifyCell(deployment, waitUntil, kind, value ?? "");
    if (type === UNSPECIFIED || value === undefined)
      return withFailure(invalid("type", WANTED), { message: `invalid type: ${JSON.stringify(type)}` });
    return classifyClaims(deployment, waitUntil, [{ given: null, type, typeField: "type", value }]);
  },
};

/** Adds GitLab's form of an error: clients of the Topology Service show `message`. */
function withMessage<T>(result: Result<T>, more: object = {}): Result<T> {
  return result.ok ? result : withFailure(result, { message: result.refusal.detail, ...more });
}

function claimsOf(claims: readonly ClassifyClaim[], isList: boolean): Result<Asked[]> {
  const asked: Asked[] = [];
  for (const [index, given] of claims.entries()) {
    const one = claimOf(given, isList ? `claims[${index}]` : "claim");
    if (!one.ok) return one;
    asked.push(one.value);
  }
  return ok(asked);
}

function claimOf(given: ClassifyClaim, field: string): Result<Asked> {
  const { type, bucket, value, ...named } = given;
  const fields = Object.entries(named).filter(([, sent]) => sent !== undefined);
  const [first] = fields;
  const forms = fields.length + Number(type !== undefined || value !== undefined || bucket !== undefined);
  if (forms !== 1 || (type !== undefined && bucket !== undefined))
    return invalid(field, "must have one name: `type` and `value`, or one other field such as `route`");
  if (first !== undefined) {
    const [name, sent] = first;
    return ok({
      given,
      type: CLAIM_FIELDS.get(name) ?? "",
      typeField: `${field}.${name}`,
      value: String(sent),
    });
  }
  const typeField = `${field}.${bucket === undefined ? "type" : "bucket"}`;
  if (type === undefined && bucket === undefined) return invalid(typeField, "is required");
  if (value === undefined) return invalid(`${field}.value`, "is required");
  return ok({ given, type: type ?? bucket ?? "", typeField, value });
}

/** The first claim that exists decides. */
async function classifyClaims(
  deployment: Deployment,
  waitUntil: WaitUntil,
  asked: readonly Asked[],
): Promise<ReturnType<typeof proxyTo> | Result<never>> {
  const { types, config } = deployment;
  const known = await types.forRead(
    asked.map(({ type, typeField }) => ({ kind: "bucket", name: type, field: typeField })),
  );
  if (!known.ok) return withMessage(known);
  // A value that no name can have doesn't exist, so the next claim decides.
  const possible: Asked[] = [];
  const keys: BucketKey[] = [];
  for await (const one of inParts(asked, ({ value }) => value)) {
    const key = keyOf(one, known.value, one.typeField, config.limits);
    if (!key.ok) continue;
    possible.push(one);
    keys.push(key.value);
  }
  // The first claim that exists decides, whatever the others are. One that may exist must be known first.
  const passed: Looked[] = [];
  for (const [index, { answer }] of askShards(deployment, keys).entries()) {
    const looked = await answer;
    if (!looked.ok) return withMessage(looked);
    passed.push(looked.value);
    if (looked.value.record === null) continue;
    const owners = await ownersOf(deployment, waitUntil, [looked.value]);
    if (!owners.ok) return withMessage(owners);
    const cell = owners.value.get(looked.value.record.cell);
    if (cell !== undefined)
      return proxyTo(cell, keptWith(passed, config.limits), possible[index]?.given ?? null);
  }
  return withMessage(refused("NOT_FOUND", "claim not found"), { headers: keptWith(passed, config.limits) });
}

/** An answer is no better than that of each claim that was passed over. */
function keptWith(passed: readonly Looked[], { routeMaxAgeS }: Limits): Record<string, string> {
  if (!passed.every(({ settled }) => settled)) return {};
  const isFirst = passed.length === 1 && passed[0]?.record !== null;
  return kept(Math.min(isFirst ? Infinity : NOT_FOUND_MAX_AGE_S, routeMaxAgeS));
}

async function classifyCell(
  { directory }: Deployment,
  waitUntil: WaitUntil,
  kind: "first" | "prefix" | "id",
  value: string,
): Promise<ReturnType<typeof proxyTo> | Result<never>> {
  const id = kind === "prefix" ? value.replace(/^cell-/, "") : value;
  // They are in the order of their ids.
  const cellIn = ({ cells }: DirectoryView): Cell | undefined =>
    kind === "first" ? cells.values().next().value : cells.get(id);
  const message = kind === "first" ? "there is no cell" : `cell not found: ${JSON.stringify(value)}`;
  const absent = (headers: Record<string, string>): Result<never> =>
    withMessage(refused("NOT_FOUND", message), { headers });

  const view = await directory.view(waitUntil);
  if (!view.ok) return withMessage(view);
  const known = cellIn(view.value);
  if (known !== undefined) return proxyTo(known, kept(CELLS_MAX_AGE_S), null);
  if (kind !== "first" && !isCellId(id)) return absent(kept(NOT_FOUND_MAX_AGE_S));
  // The copy may be older than the cell. What it says may be a second old, and must not get older.
  const recent = await directory.recentView(waitUntil);
  if (!recent.ok) return withMessage(recent);
  const cell = cellIn(recent.value.view);
  return cell === undefined
    ? absent(recent.value.isNew ? kept(NOT_FOUND_MAX_AGE_S) : {})
    : proxyTo(cell, kept(CELLS_MAX_AGE_S), null);
}

/** GitLab's clients add a scheme and a path of their own, so the address is only a host. */
const proxyTo = ({ address }: Cell, headers: Record<string, string>, claim: ClassifyClaim | null) =>
  ok({
    status: 200 as const,
    body: {
      action: "PROXY" as const,
      proxy: { address: new URL(address).host },
      ...(claim === null ? {} : { matched_claim: claim }),
    },
    headers,
  });

export { classifyHandlers as handlers, classifyRoutes as routes };
