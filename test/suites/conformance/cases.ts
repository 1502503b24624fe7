import { v4 as newUuid } from "uuid";
import type { RouteId } from "../../../src/coordinator/api/contract.ts";
import type { Client, MintedKey, Sent } from "./client.ts";
import { begun, claim, committed, freshName, ownedScope } from "./leases.ts";

export interface Request extends Sent {
  params?: Record<string, string>;
  query?: string;
}

interface Success extends Request {
  status: number;
  /** Prepares what the request needs. It may complete the request. */
  before?: (api: Client) => Promise<Partial<Request>>;
}

export interface Bad extends Request {
  field: string;
  /** True if the request only names a type that is not declared, so that the directory is read (T4). */
  isUndeclared?: boolean;
}

export interface Case {
  success: readonly [Success, ...Success[]];
  /** Invalid requests in addition to those that the test makes from the contract. */
  bad: Readonly<Record<string, Bad>>;
  /** Success statuses that only a coordinator with other settings answers, and where they are tested. */
  elsewhere?: { readonly statuses: readonly number[]; readonly file: "removals.ts" };
}

const cell = { cell: "1" };
const sdk = { name: "leasehold", version: "0.1.0" };

const badId = { params: { id: "a.b" }, field: "id" };

/** A disabled endpoint. There is room for 10 of them, so an earlier one is used again. */
const webhook = async (api: Client): Promise<Partial<Request>> => {
  interface Webhook {
    id: string;
  }
  const path = "/v1/admin/webhooks";
  const { webhooks } = await api.json<{ webhooks: Webhook[] }>(200, "GET", path);
  const known = webhooks[0];
  if (known !== undefined) return { params: { id: known.id } };
  const body = { url: "https://hooks.invalid/b", enabled: false };
  const added = await api.json<{ webhook: Webhook }>(201, "POST", path, { body });
  return { params: { id: added.webhook.id } };
};

const badParts: Case["bad"] = {
  "an unknown kind": { params: { part: "cell-1" }, field: "part" },
  "no number": { params: { part: "shard" }, field: "part" },
  "a leading zero": { params: { part: "ledger-01" }, field: "part" },
};

const badBatches: Case["bad"] = {
  "an empty batch": { body: {}, field: "body" },
  "empty lists": { body: { creates: [], destroys: [] }, field: "body" },
  "a list that is not a list": { body: { creates: {} }, field: "creates" },
  "no bucket": { body: { creates: [{ ...claim("a"), bucket: undefined }] }, field: "creates[0].bucket" },
  "a create without a subject": {
    body: { creates: [claim("a"), { ...claim("b"), subject: undefined }] },
    field: "creates[1].subject",
  },
  "a replace without a source": {
    body: { replaces: [{ ...claim("b"), source: undefined }] },
    field: "replaces[0].source",
  },
  UNSPECIFIED: {
    body: { creates: [{ ...claim("a"), bucket: { type: "UNSPECIFIED", value: "a" } }] },
    field: "creates[0].bucket.type",
    isUndeclared: true,
  },
  "an unknown field deep inside": {
    body: { creates: [{ ...claim("a"), cell_id: "2" }] },
    field: "creates[0].cell_id",
  },
  "a cell in the body": { body: { cell_id: "1", creates: [claim("a")] }, field: "cell_id" },
  "a value that is not a string": {
    body: { creates: [{ ...claim("a"), bucket: { type: "ROUTES", value: 7 } }] },
    field: "creates[0].bucket.value",
  },
  "an empty value": { body: { creates: [claim("")] }, field: "creates[0].bucket.value" },
  "a path with an empty segment": {
    body: { destroys: [claim("ok"), claim("a//b")] },
    field: "destroys[1].bucket.value",
  },
  "an id that JSON cannot represent exactly": {
    body: { creates: [claim("a", 2 ** 53)] },
    field: "creates[0].source.id",
  },
  "an id with a fraction": { body: { creates: [claim("a", 1.5)] }, field: "creates[0].source.id" },
  "an empty id": { body: { creates: [claim("a", "")] }, field: "creates[0].source.id" },
  "an id with a control character": {
    body: { creates: [claim("a", "a\nb")] },
    field: "creates[0].source.id",
  },
  "an id of 129 bytes": {
    body: { creates: [claim("a", `${"é".repeat(64)}x`)] },
    field: "creates[0].source.id",
  },
  "an id with a lone surrogate": { body: { creates: [claim("a", "\ud800")] }, field: "creates[0].source.id" },
  "a name twice in one list": {
    body: { creates: [claim("a"), claim("b"), claim("A")] },
    field: "creates[2].bucket",
  },
  "a name twice in two lists": {
    body: { creates: [claim("a")], destroys: [{ bucket: { type: "ROUTES", value: "A" } }] },
    field: "destroys[0].bucket",
  },
  "an epoch of a create": { body: { creates: [{ ...claim("a"), epoch: 1 }] }, field: "creates[0].epoch" },
  "epoch 0": {
    body: { destroys: [{ bucket: { type: "ROUTES", value: "a" }, epoch: 0 }] },
    field: "destroys[0].epoch",
  },
  "an epoch with a fraction": {
    body: { replaces: [{ ...claim("a"), epoch: 1.5 }] },
    field: "replaces[0].epoch",
  },
  "an epoch that JSON cannot represent exactly": {
    body: { replaces: [{ ...claim("a"), epoch: 2 ** 53 }] },
    field: "replaces[0].epoch",
  },
  "an epoch that is a string": {
    body: { destroys: [{ bucket: { type: "ROUTES", value: "a" }, epoch: "1" }] },
    field: "destroys[0].epoch",
  },
  "allow_missing that is not a boolean": {
    body: { creates: [claim("a")], allow_missing: 1 },
    field: "allow_missing",
  },
  "a negative wait_ms": { body: { creates: [claim("a")], wait_ms: -1 }, field: "wait_ms" },
  "a wait_ms with a fraction": { body: { creates: [claim("a")], wait_ms: 0.5 }, field: "wait_ms" },
  "a wait_ms that is a string": { body: { creates: [claim("a")], wait_ms: "1" }, field: "wait_ms" },
  "a wait_ms above the limit": { body: { creates: [claim("a")], wait_ms: 30_001 }, field: "wait_ms" },
};

const badUuids: Case["bad"] = {
  "no UUID": { params: { ...cell, uuid: "x" }, field: "uuid" },
  "the nil UUID": { params: { ...cell, uuid: "00000000-0000-0000-0000-000000000000" }, field: "uuid" },
  "the max UUID": { params: { ...cell, uuid: "ffffffff-ffff-ffff-ffff-ffffffffffff" }, field: "uuid" },
  "a UUID of another variant": {
    params: { ...cell, uuid: "00000000-0000-4000-0000-000000000001" },
    field: "uuid",
  },
  "a UUID in braces": { params: { ...cell, uuid: `{${newUuid()}}` }, field: "uuid" },
};

const badCells: Case["bad"] = Object.fromEntries(
  ["0", "01", "-1", "+1", "1.0", "abc", "9223372036854775808", "99999999999999999999", "%20"].map((id) => [
    `cell ${id}`,
    { key: "operator", params: { cell: id, uuid: newUuid() }, field: "cell" } as const,
  ]),
);

/** The digest of no claims. */
const NO_CLAIMS = "0".repeat(32);

let drained = 0;
/** Adds a cell without claims, and drains it. */
async function drainedCell(api: Client): Promise<string> {
  const id = String(7_000 + (drained += 1));
  const body = { cell_id: id, name: "to be removed", address: "https://removed.test" };
  await api.json(201, "POST", "/v1/admin/cells", { body });
  await api.json(200, "POST", `/v1/admin/cells/${id}/drain`, {});
  return id;
}

/** A cell whose removal is approved. */
async function approvedCell(api: Client): Promise<string> {
  const id = await drainedCell(api);
  await api.json(200, "POST", `/v1/admin/cells/${id}/removal`, { body: { export: [] } });
  return id;
}

const TRANSFER = { id: "2-0191e1a0-0000-7000-8000-000000000001" };

/** Makes room for another transfer: only some may be prepared at a time. */
async function abortTransfers(api: Client): Promise<void> {
  interface Listed {
    transfers: { id: string; state: string }[];
  }
  const { transfers } = await api.json<Listed>(200, "GET", "/v1/transfers?to=2&page_size=1000", {});
  for (const { id, state } of transfers)
    if (state === "PREPARED")
      await api.json(200, "POST", `/v1/transfers/${id}/abort`, { body: { reason: "a test" } });
}

interface Prepared {
  transfer: { id: string; expected: { from: object; to: object } };
}

async function prepareTransfer(api: Client): Promise<Prepared["transfer"]> {
  await abortTransfers(api);
  const body = { uuid: newUuid(), to: "2", scope: await ownedScope(api) };
  const { transfer } = await api.json<Prepared>(200, "POST", "/v1/transfers", { key: "cell 1", body });
  return transfer;
}

/** Prepares a transfer of one claim from cell 1 to cell 2. */
async function preparedTransfer(api: Client): Promise<{ params: { id: string } }> {
  const { id } = await prepareTransfer(api);
  return { params: { id } };
}

/** Prepares a transfer that may be cut. */
async function verifiedTransfer(api: Client): Promise<{ params: { id: string } }> {
  const { id } = await prepareTransfer(api);
  const path = `/v1/transfers/${id}`;
  const { expected } = (await api.json<Prepared>(200, "GET", path, {})).transfer;
  await api.json(200, "POST", `${path}/accept`, { key: "cell 2" });
  await api.json(200, "POST", `${path}/report`, { key: "cell 1", body: expected.from });
  await api.json(200, "POST", `${path}/report`, { key: "cell 2", body: expected.to });
  return { params: { id } };
}

const badTransferIds: Case["bad"] = Object.fromEntries(
  [
    "7",
    "2-",
    "0-0191e1a0-0000-7000-8000-000000000001",
    "2-nonsense",
    "0191e1a0-0000-7000-8000-000000000001",
  ].map((id) => [`the id ${id}`, { params: { id }, field: "id" }]),
);

const badSteps: Case["bad"] = {
  ...badTransferIds,
  "a blank reason": { params: TRANSFER, body: { reason: " " }, field: "reason" },
  "a reason that is not text": { params: TRANSFER, body: { reason: 7 }, field: "reason" },
  "an operator without a reason": { key: "operator", params: TRANSFER, body: {}, field: "reason" },
};

const moved = { to: "2", scope: "9970" };
const badMoves: Case["bad"] = {
  "no destination": { body: { uuid: newUuid(), scope: "9970" }, field: "to" },
  "no scope": { body: { uuid: newUuid(), to: "2" }, field: "scope" },
  "an empty scope": { body: { uuid: newUuid(), to: "2", scope: "" }, field: "scope" },
  "the destination as the source": { body: { uuid: newUuid(), ...moved, to: "1" }, field: "to" },
  "a destination that is no cell id": { body: { uuid: newUuid(), ...moved, to: "02" }, field: "to" },
  "an operator without a source": {
    key: "operator",
    body: { uuid: newUuid(), ...moved, reason: "a test" },
    field: "from",
  },
};

/** The same without the UUID, which a plan doesn't have. */
const withoutUuid = (cases: Case["bad"]): Case["bad"] =>
  Object.fromEntries(
    Object.entries(cases).map(([name, bad]) => {
      const { uuid: _, reason: __, ...body } = bad.body as Record<string, unknown>;
      return [name, { ...bad, body }];
    }),
  );

const badPages: Case["bad"] = {
  "page_size 0": { query: "page_size=0", field: "page_size" },
  "a negative page_size": { query: "page_size=-1", field: "page_size" },
  "a page_size that is not a number": { query: "page_size=ten", field: "page_size" },
  "a page_size with a fraction": { query: "page_size=1.5", field: "page_size" },
  "an empty page_size": { query: "page_size=", field: "page_size" },
  "an invalid page_token": { query: "page_token=abc", field: "page_token" },
  "a page_token with other characters": { query: "page_token=%C3%A9", field: "page_token" },
};

const within = (query: string, cases: Case["bad"]): Case["bad"] =>
  Object.fromEntries(
    Object.entries(cases).map(([name, bad]) => [name, { ...bad, query: `${query}&${bad.query}` }]),
  );

const badNames: Case["bad"] = {
  "an unknown bucket type": {
    params: { bucket_type: "NAMES", value: "a" },
    field: "bucket_type",
    isUndeclared: true,
  },
  UNSPECIFIED: {
    params: { bucket_type: "UNSPECIFIED", value: "a" },
    field: "bucket_type",
    isUndeclared: true,
  },
  "a bucket type in lower case": {
    params: { bucket_type: "routes", value: "a" },
    field: "bucket_type",
  },
  "no value": { params: { bucket_type: "ROUTES", value: "" }, field: "value" },
  "a path that ends with a slash": { params: { bucket_type: "ROUTES", value: "a/" }, field: "value" },
  "bad percent-encoding": { params: { bucket_type: "EMAILS", value: "a%zz" }, field: "value" },
  "percent-encoding that is not UTF-8": {
    params: { bucket_type: "EMAILS", value: "a%ff" },
    field: "value",
  },
  "a value of 1025 bytes": {
    params: { bucket_type: "EMAILS", value: "a".repeat(1_025) },
    field: "value",
  },
  "an encoded NUL": { params: { bucket_type: "EMAILS", value: "a%00" }, field: "value" },
};

const badPositions: Case["bad"] = {
  "an empty min_position": { query: "min_position=", field: "min_position" },
  "a position without a shard": { query: "min_position=4711", field: "min_position" },
  "a shard without a position": { query: "min_position=3:", field: "min_position" },
  "a position with a leading zero": { query: "min_position=3:04711", field: "min_position" },
  "a negative position": { query: "min_position=3:-1", field: "min_position" },
  "a space between two positions": { query: "min_position=3:1, 2:1", field: "min_position" },
  "a comma at the end": { query: "min_position=3:1,", field: "min_position" },
  "a shard twice": { query: "min_position=3:1,2:1,3:1", field: "min_position" },
  "a position that JSON cannot represent exactly": {
    query: `min_position=3:${2 ** 53}`,
    field: "min_position",
  },
  "more positions than fit into a cookie": {
    query: `min_position=${Array.from({ length: 256 }, (_, shard) => `${shard}:${2 ** 53 - 1}`).join(",")}`,
    field: "min_position",
  },
  "a shard that the deployment doesn't have": { query: "min_position=256:1", field: "min_position" },
};

const badRanges: Case["bad"] = {
  "no source type": { query: "source_id_gt=1", field: "source_type" },
  "an unknown source type": { query: "source_type=X", field: "source_type", isUndeclared: true },
  "an unknown bucket type": {
    query: "source_type=RAILS_TABLE_ROUTES&bucket_type=ROUTES&bucket_type=X",
    field: "bucket_type[1]",
    isUndeclared: true,
  },
  "a bucket type in lower case": {
    query: "source_type=RAILS_TABLE_ROUTES&bucket_type=ROUTES&bucket_type=routes",
    field: "bucket_type[1]",
  },
  "an empty source id": { query: "source_type=RAILS_TABLE_ROUTES&source_id_lte=", field: "source_id_lte" },
  "a range that ends before it begins": {
    query: "source_type=RAILS_TABLE_ROUTES&source_id_gt=10&source_id_lte=9",
    field: "source_id_lte",
  },
  "a source id that is too long": {
    query: `source_type=RAILS_TABLE_ROUTES&source_id_lte=${"9".repeat(129)}`,
    field: "source_id_lte",
  },
  "bad percent-encoding": {
    query: "source_type=RAILS_TABLE_ROUTES&source_id_lte=%ff",
    field: "source_id_lte",
  },
};

const decisions: Case["bad"] = {
  "a reason from a cell": { key: "cell 1", body: { reason: "because" }, field: "reason" },
  "no reason from an operator": { key: "operator", field: "reason" },
  "an empty body from an operator": { key: "operator", body: {}, field: "reason" },
  "an empty reason": { key: "operator", body: { reason: " " }, field: "reason" },
  "a reason that is too long": { key: "operator", body: { reason: "x".repeat(501) }, field: "reason" },
  "a reason that is not text": { key: "operator", body: { reason: 7 }, field: "reason" },
  "a reason with control characters": { key: "operator", body: { reason: "a\u0000b" }, field: "reason" },
};

interface DeclaredTypes {
  version: number;
  types: Record<"bucket_types" | "subject_types" | "source_types", Record<string, object>>;
}

const noIdentities = { issuers: [], authorities: [] };

/** The identities of the coordinator, as a change has them. */
async function identitiesOf(api: Client): Promise<object> {
  const { version, issuers, authorities } = await api.json<Record<string, unknown>>(
    200,
    "GET",
    "/v1/admin/identities",
  );
  return { version, issuers, authorities };
}

const declaredTypes = (api: Client): Promise<DeclaredTypes> => api.json(200, "GET", "/v1/admin/types");

const pick = ({ version, types: same }: DeclaredTypes): DeclaredTypes => ({ version, types: same });

const types = {
  bucket_types: { HANDLES: { number: 1 } },
  subject_types: { PERSON: { number: 1 } },
  source_types: { PEOPLE: { number: 1 } },
};
const handles = (more: object) => ({ ...types, bucket_types: { HANDLES: { number: 1, ...more } } });

const badTypes: Case["bad"] = {
  "no version": { body: { types }, field: "version" },
  "a version that is a string": { body: { version: "0", types }, field: "version" },
  "a negative version": { body: { version: -1, types }, field: "version" },
  "no types": { body: { version: 0 }, field: "types" },
  "a list of bucket types": {
    body: { version: 0, types: { ...types, bucket_types: [] } },
    field: "types.bucket_types",
  },
  "an unknown list": { body: { version: 0, types: { ...types, cell_types: {} } }, field: "types.cell_types" },
  "dry_run that is not a boolean": { body: { version: 0, types, dry_run: 1 }, field: "dry_run" },
  "no source types": {
    body: { version: 0, types: { ...types, source_types: {} } },
    field: "source_types",
  },
  "an unknown flag": {
    body: { version: 0, types: handles({ cases: "exact" }) },
    field: "bucket_types.HANDLES.cases",
  },
  "an unknown value of a flag": {
    body: { version: 0, types: handles({ case: "EXACT" }) },
    field: "bucket_types.HANDLES.case",
  },
  "the same number twice": {
    body: { version: 0, types: { ...types, subject_types: { A: { number: 1 }, B: { number: 1 } } } },
    field: "subject_types.B.number",
  },
  "a pattern that looks around": {
    body: { version: 0, types: handles({ pattern: "(?=a)" }) },
    field: "bucket_types.HANDLES.pattern",
  },
  "a name in lower case": {
    body: { version: 0, types: { ...types, source_types: { people: { number: 1 } } } },
    field: "source_types.people",
  },
};

const issuer = {
  name: "forge",
  issuer: "https://forge.example",
  audience: "leasehold",
  algorithms: ["RS256"],
  jwks_url: "https://forge.example/keys",
  rules: [{ claims: { sub: "deployer" }, role: "operator" }],
};
/** A change with this issuer, changed in one way. */
const issuing = (more: object) => ({
  body: { version: 0, issuers: [{ ...issuer, ...more }], authorities: [] },
});
const ruled = (more: object) => issuing({ rules: [{ ...issuer.rules[0], ...more }] });

const badIdentities: Case["bad"] = {
  "no version": { body: { issuers: [], authorities: [] }, field: "version" },
  "no authorities": { body: { version: 0, issuers: [] }, field: "authorities" },
  "a name in upper case": { ...issuing({ name: "Forge" }), field: "issuers[0].name" },
  "a name twice": {
    body: { version: 0, issuers: [issuer, issuer], authorities: [] },
    field: "issuers[1].name",
  },
  "no algorithm": { ...issuing({ algorithms: [] }), field: "issuers[0].algorithms" },
  "an algorithm with a shared secret": {
    ...issuing({ algorithms: ["HS256"] }),
    field: "issuers[0].algorithms[0]",
  },
  "no signature": { ...issuing({ algorithms: ["none"] }), field: "issuers[0].algorithms[0]" },
  "neither URL nor keys": { ...issuing({ jwks_url: undefined }), field: "issuers[0].jwks_url" },
  "a URL and keys": { ...issuing({ keys: [{ kty: "RSA", kid: "1" }] }), field: "issuers[0].keys" },
  "a private key": {
    ...issuing({ jwks_url: undefined, keys: [{ kty: "RSA", kid: "1", d: "AQAB" }] }),
    field: "issuers[0].keys[0].d",
  },
  "a URL without TLS": {
    ...issuing({ jwks_url: "http://forge.example/keys" }),
    field: "issuers[0].jwks_url",
  },
  "a header that no proxy is known for": {
    ...issuing({ token_header: "cookie" }),
    field: "issuers[0].token_header",
  },
  "a header in another spelling": {
    ...issuing({ token_header: "Cf-Access-Jwt-Assertion" }),
    field: "issuers[0].token_header",
  },
  "a rule without claims": { ...ruled({ claims: {} }), field: "issuers[0].rules[0].claims" },
  "a claim that is a number": { ...ruled({ claims: { sub: 1 } }), field: "issuers[0].rules[0].claims.sub" },
  "a claim without values": { ...ruled({ claims: { sub: [] } }), field: "issuers[0].rules[0].claims.sub" },
  "an unknown role": { ...ruled({ role: "root" }), field: "issuers[0].rules[0].role" },
  "a cell's rule without its cell": { ...ruled({ role: "cell" }), field: "issuers[0].rules[0].cell_id" },
  "an operator's rule with a cell": { ...ruled({ cell_id: "1" }), field: "issuers[0].rules[0].cell_id" },
  "a certificate that is none": {
    body: { version: 0, issuers: [], authorities: [{ name: "ours", certificate: "no", rules: [] }] },
    field: "authorities[0].certificate",
  },
  "dry_run that is not a boolean": { body: { version: 0, ...noIdentities, dry_run: 1 }, field: "dry_run" },
};

const uuid = newUuid();

interface Growing {
  shards: number;
  growth: { phase: string; can_be_cut: boolean } | null;
}

interface Running {
  operations: { id: string; kind: string }[];
}

/** Ends the restores that earlier cases have started, and a growth that one of them has started, or cut. */
async function noOperation(api: Client): Promise<Partial<Request>> {
  const { operations } = await api.json<Running>(200, "GET", "/v1/admin/operations");
  for (const { id, kind } of operations)
    if (kind === "restore")
      await api.json(200, "POST", `/v1/admin/operations/${id}/end`, { body: { reason: "a test" } });
  let { growth } = await api.json<Growing>(200, "GET", "/v1/admin/growth");
  if (growth?.phase === "copying") {
    await api.json(200, "POST", "/v1/admin/growth/abort", { body: { reason: "a test" } });
    return {};
  }
  for (let steps = 1; growth !== null && steps <= 100; steps += 1)
    ({ growth } = await api.json<Growing>(200, "POST", "/v1/admin/growth/steps"));
  if (growth !== null) throw new Error("100 steps have not ended the growth");
  return {};
}

/** Starts a growth by one shard. */
async function newGrowth(api: Client): Promise<Partial<Request>> {
  await noOperation(api);
  const { shards } = await api.json<Growing>(200, "GET", "/v1/admin/growth");
  await api.json(200, "POST", "/v1/admin/growth", { body: { shards: shards + 1, reason: "a test" } });
  return {};
}

/** Starts a growth by one shard, and copies all names. */
async function copiedGrowth(api: Client): Promise<Partial<Request>> {
  await newGrowth(api);
  for (let steps = 1; steps <= 100; steps += 1) {
    const { growth } = await api.json<Growing>(200, "POST", "/v1/admin/growth/steps");
    if (growth?.can_be_cut === true) return {};
  }
  throw new Error("100 steps have not copied all names");
}

/** Makes a key of this role. */
export const mintKeyOf = async (role: "viewer" | "scraper" | "bridge", api: Client): Promise<MintedKey> =>
  (await api.json<{ key: MintedKey }>(201, "POST", "/v1/admin/keys", { body: { role } })).key;

export const cases: Record<RouteId, Case> = {
  beginLease: {
    success: [
      {
        key: "cell 1",
        params: { ...cell, uuid: newUuid() },
        body: { creates: [claim(freshName())], allow_missing: false },
        status: 201,
      },
      {
        key: "operator",
        params: cell,
        status: 200,
        before: async (api) => {
          const lease = await begun(api);
          return {
            params: { ...cell, uuid: lease.uuid.toUpperCase() },
            body: { creates: [claim(lease.value)] },
          };
        },
      },
    ],
    bad: { ...badCells, ...badUuids, ...badBatches },
  },
  beginLeaseWithNewId: {
    success: [{ key: "cell 1", params: cell, body: { creates: [claim(freshName())] }, status: 201 }],
    bad: { ...badCells, ...badBatches },
  },
  commitLease: {
    success: [
      {
        key: "cell 1",
        params: cell,
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
      {
        key: "cell 1",
        params: cell,
        body: {},
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
      {
        key: "operator",
        params: cell,
        body: { reason: "the cell is gone" },
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
    ],
    bad: { ...badCells, ...badUuids, ...decisions },
  },
  rollbackLease: {
    success: [
      {
        key: "cell 1",
        params: cell,
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
      {
        key: "operator",
        params: { ...cell, uuid: newUuid() },
        body: { reason: "never\tagain\n" },
        status: 200,
      },
    ],
    bad: { ...badCells, ...badUuids, ...decisions },
  },
  renewLease: {
    success: [
      {
        key: "cell 1",
        params: cell,
        body: { reason: "an import with ünïcode" },
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
    ],
    bad: {
      ...badUuids,
      "no reason": { params: { ...cell, uuid }, body: {}, field: "reason" },
      "a blank reason": { params: { ...cell, uuid }, body: { reason: " " }, field: "reason" },
      "a reason that is no text": { params: { ...cell, uuid }, body: { reason: 1 }, field: "reason" },
      "an unknown field": { params: { ...cell, uuid }, body: { reason: "x", for_s: 5 }, field: "for_s" },
    },
  },
  getLease: {
    success: [
      {
        key: "cell 1",
        params: cell,
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await begun(api)).uuid } }),
      },
      {
        key: "operator",
        params: cell,
        status: 200,
        before: async (api) => ({ params: { ...cell, uuid: (await committed(api)).uuid } }),
      },
    ],
    bad: { ...badCells, ...badUuids },
  },
  listLeases: {
    success: [
      {
        key: "cell 1",
        params: cell,
        query: "page_size=2&created_after=2020-01-01T00:00:00%2B02:00",
        status: 200,
        before: async (api) => (await begun(api), {}),
      },
      { key: "operator", params: cell, query: "page_token=", status: 200 },
    ],
    bad: {
      ...badCells,
      ...badPages,
      "a time without an offset": { query: "created_after=2026-11-20T12:00:00", field: "created_after" },
      "a time that is a number": { query: "created_after=1700000000", field: "created_after" },
      "a day that does not exist": { query: "created_after=2026-02-30T12:00:00Z", field: "created_after" },
    },
  },
  getRecord: {
    success: [
      {
        key: "cell 1",
        params: { bucket_type: "ROUTES" },
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await committed(api)).value } }),
      },
      {
        key: "cell 2",
        params: { bucket_type: "ROUTES" },
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await committed(api)).value } }),
      },
      {
        key: "router",
        params: { bucket_type: "ROUTES" },
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await begun(api)).value } }),
      },
    ],
    bad: badNames,
  },
  lookupRecords: {
    success: [
      {
        key: "router",
        status: 200,
        before: async (api) => {
          const { value } = await committed(api);
          const [known, unknown] = [
            { type: "ROUTES", value: value.toUpperCase() },
            { type: "ROUTES", value: freshName() },
          ];
          return { body: { buckets: [known, unknown, known] } };
        },
      },
    ],
    bad: {
      "no buckets": { body: { buckets: [] }, field: "buckets" },
      "101 buckets": {
        body: { buckets: Array.from({ length: 101 }, () => ({ type: "EMAILS", value: "a@b" })) },
        field: "buckets[100]",
      },
      "a bad value": {
        body: {
          buckets: [
            { type: "EMAILS", value: "a" },
            { type: "EMAILS", value: "\u200b" },
          ],
        },
        field: "buckets[1].value",
      },
      "an unknown type": {
        body: { buckets: [{ type: "X", value: "a" }] },
        field: "buckets[0].type",
        isUndeclared: true,
      },
    },
  },
  getRoute: {
    success: [
      {
        key: "cell 1",
        params: { bucket_type: "ROUTES" },
        query: "min_position=0:0",
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await committed(api)).value } }),
      },
      {
        key: "cell 2",
        params: { bucket_type: "ROUTES" },
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await committed(api)).value } }),
      },
      {
        key: "router",
        params: { bucket_type: "ROUTES" },
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await begun(api)).value } }),
      },
    ],
    bad: {
      ...badNames,
      "a value of 10 kB": {
        params: { bucket_type: "EMAILS", value: "a".repeat(10_240) },
        field: "value",
      },
      ...badPositions,
    },
  },
  lookupRoutes: {
    success: [
      {
        key: "router",
        status: 200,
        before: async (api) => ({
          body: {
            names: [
              { type: "ROUTES", value: (await committed(api)).value },
              { type: "ROUTES", value: freshName() },
            ],
            min_position: "0:0,1:0",
          },
        }),
      },
      { key: "cell 2", body: { names: [{ type: "EMAILS", value: "a@b.example" }] }, status: 200 },
    ],
    bad: {
      "no names": { body: { names: [] }, field: "names" },
      "101 names": {
        body: { names: Array.from({ length: 101 }, () => ({ type: "ROUTES", value: "a" })) },
        field: "names[100]",
      },
      "an unknown bucket type": {
        body: {
          names: [
            { type: "ROUTES", value: "a" },
            { type: "NAMES", value: "a" },
          ],
        },
        field: "names[1].type",
        isUndeclared: true,
      },
      "an invalid value": {
        body: {
          names: [
            { type: "ROUTES", value: "a" },
            { type: "ROUTES", value: "a//b" },
          ],
        },
        field: "names[1].value",
      },
      ...Object.fromEntries(
        Object.entries(badPositions).map(([name, { query = "", field }]) => [
          name,
          {
            body: {
              names: [{ type: "ROUTES", value: "a" }],
              min_position: query.slice("min_position=".length),
            },
            field,
          },
        ]),
      ),
      "a min_position that is a number": {
        body: { names: [{ type: "ROUTES", value: "a" }], min_position: 4_711 },
        field: "min_position",
      },
    },
  },
  listChanges: {
    success: [
      { key: "cell 1", status: 200 },
      { key: "operator", query: "after=0:0&cell=1&bucket_type=ROUTES&page_size=10", status: 200 },
    ],
    bad: {
      "positions without a shard": { query: "after=4711", field: "after" },
      "a shard twice": { query: "after=0:1,0:2", field: "after" },
      "a shard that does not exist": { query: "after=255:1", field: "after" },
      "an empty checkpoint": { query: "after=", field: "after" },
      "a bad cell": { query: "cell=x", field: "cell" },
      "an unknown type": { query: "bucket_type=CARS", field: "bucket_type", isUndeclared: true },
      "a page of nothing": { query: "page_size=0", field: "page_size" },
    },
  },
  getReport: {
    success: [
      { key: "router", params: { shard: "0" }, status: 200 },
      { key: "operator", params: { shard: "1" }, query: "after=0", status: 200 },
    ],
    bad: {
      "a shard that is no number": { params: { shard: "first" }, field: "shard" },
      "a shard with a leading zero": { params: { shard: "00" }, field: "shard" },
      "a negative shard": { params: { shard: "-1" }, field: "shard" },
      "an empty position": { params: { shard: "0" }, query: "after=", field: "after" },
      "a negative position": { params: { shard: "0" }, query: "after=-1", field: "after" },
      "a position with a fraction": { params: { shard: "0" }, query: "after=1.0", field: "after" },
      "a position with a leading zero": { params: { shard: "0" }, query: "after=01", field: "after" },
      "a position that JSON cannot represent exactly": {
        params: { shard: "0" },
        query: `after=${2 ** 53}`,
        field: "after",
      },
    },
  },
  listCellAddresses: {
    success: [
      { key: "router", status: 200 },
      { key: "cell 1", status: 200 },
    ],
    bad: {},
  },
  classify: {
    success: [
      { key: "router", body: { type: "FIRST_CELL" }, status: 200 },
      {
        key: "operator",
        status: 200,
        before: async (api) => ({
          body: { claims: [{ route: freshName() }, { type: "ROUTES", value: (await committed(api)).value }] },
        }),
      },
    ],
    bad: {
      "nothing to classify by": { body: {}, field: "type" },
      "a type without a value": { body: { type: "ROUTES" }, field: "type" },
      "an unknown type": { body: { type: "JUNK", value: "a" }, field: "type", isUndeclared: true },
      "a type that names a cell, beside claims": {
        body: { type: "CELL_ID", value: "1", claims: [{ route: "a" }] },
        field: "type",
      },
      "a claim without a name": { body: { claims: [{ route: "a" }, {}] }, field: "claims[1]" },
      "a claim with two names": { body: { claims: [{ route: "a", username: "a" }] }, field: "claims[0]" },
      "a claim with a name in two forms": {
        body: { claims: [{ route: "a", type: "ROUTES", value: "a" }] },
        field: "claims[0]",
      },
      "a claim with two types": {
        body: { claims: [{ type: "ROUTES", bucket: "ROUTES", value: "a" }] },
        field: "claims[0]",
      },
      "a claim without a type": { body: { claim: { value: "a" } }, field: "claim.type" },
      "a claim without a value": { body: { claim: { bucket: "ROUTES" } }, field: "claim.value" },
      "a claim of an undeclared type": {
        body: {
          claims: [
            { type: "ROUTES", value: "a" },
            { bucket: "NAMES", value: "a" },
          ],
        },
        field: "claims[1].bucket",
        isUndeclared: true,
      },
      "an id that JSON cannot represent exactly": {
        body: { claims: [{ project_id: 2 ** 53 }] },
        field: "claims[0].project_id",
      },
      "101 claims": {
        body: { claims: Array.from({ length: 101 }, () => ({ route: "a" })) },
        field: "claims[100]",
      },
    },
  },
  listRecords: {
    success: [
      {
        key: "cell 1",
        params: cell,
        query: "source_type=RAILS_TABLE_ROUTES",
        status: 200,
        before: async (api) => (await committed(api), {}),
      },
      {
        key: "operator",
        params: cell,
        query:
          "source_type=RAILS_TABLE_ROUTES&bucket_type=ROUTES&bucket_type=EMAILS" +
          "&source_id_gt=1&source_id_lte=99&page_size=1",
        status: 200,
      },
    ],
    bad: {
      ...badCells,
      ...within("source_type=RAILS_TABLE_ROUTES", badPages),
      ...badRanges,
    },
  },
  exportRecords: {
    success: [
      {
        key: "cell 1",
        params: cell,
        query: "source_type=RAILS_TABLE_ROUTES",
        status: 200,
        before: async (api) => (await committed(api), {}),
      },
      {
        key: "operator",
        params: cell,
        query:
          "source_type=RAILS_TABLE_ROUTES&bucket_type=ROUTES&bucket_type=EMAILS" +
          "&source_id_gt=1&source_id_lte=99",
        status: 200,
      },
    ],
    bad: {
      ...badCells,
      ...badRanges,
      "a page size": { query: "source_type=RAILS_TABLE_ROUTES&page_size=1", field: "page_size" },
    },
  },
  digestRecords: {
    success: [
      {
        key: "cell 1",
        params: cell,
        body: { source_type: "RAILS_TABLE_ROUTES", ranges: [{}] },
        status: 200,
        before: async (api) => (await committed(api), {}),
      },
      {
        key: "operator",
        params: cell,
        body: {
          source_type: "RAILS_TABLE_USERS",
          bucket_types: ["USERNAMES", "EMAILS"],
          ranges: [{ source_id_lte: 9 }, { source_id_gt: 9, source_id_lte: "a" }, { source_id_gt: "a" }],
        },
        status: 200,
      },
    ],
    bad: {
      ...badCells,
      "no source type": { body: { ranges: [{}] }, field: "source_type" },
      "an unknown source type": {
        body: { source_type: "X", ranges: [{}] },
        field: "source_type",
        isUndeclared: true,
      },
      "no ranges": { body: { source_type: "RAILS_TABLE_USERS" }, field: "ranges" },
      "an empty list of ranges": { body: { source_type: "RAILS_TABLE_USERS", ranges: [] }, field: "ranges" },
      "257 ranges": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: Array.from({ length: 257 }, () => ({})) },
        field: "ranges[256]",
      },
      "an empty list of bucket types": {
        body: { source_type: "RAILS_TABLE_USERS", bucket_types: [], ranges: [{}] },
        field: "bucket_types",
      },
      "an unknown bucket type": {
        body: { source_type: "RAILS_TABLE_USERS", bucket_types: ["ROUTES", "X"], ranges: [{}] },
        field: "bucket_types[1]",
        isUndeclared: true,
      },
      "an unknown field of a range": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{ from: "1" }] },
        field: "ranges[0].from",
      },
      "an empty source id": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{ source_id_lte: 1 }, { source_id_gt: "" }] },
        field: "ranges[1].source_id_gt",
      },
      "a source id that JSON cannot represent exactly": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{ source_id_gt: 2 ** 53 }] },
        field: "ranges[0].source_id_gt",
      },
      "a source id that is too long": {
        body: {
          source_type: "RAILS_TABLE_USERS",
          ranges: [{ source_id_lte: 1 }, { source_id_gt: 1, source_id_lte: "9".repeat(129) }],
        },
        field: "ranges[1].source_id_lte",
      },
      "a range from an id to itself": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{ source_id_gt: "7", source_id_lte: 7 }] },
        field: "ranges[0].source_id_lte",
      },
      "a range that ends before it begins": {
        body: {
          source_type: "RAILS_TABLE_USERS",
          ranges: [
            { source_id_gt: "9", source_id_lte: "10" },
            { source_id_gt: "10", source_id_lte: "9" },
          ],
        },
        field: "ranges[1].source_id_lte",
      },
      "a range that begins before the end of the previous one": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{ source_id_lte: 10 }, { source_id_gt: 9 }] },
        field: "ranges[1].source_id_gt",
      },
      "a range after one without an end": {
        body: { source_type: "RAILS_TABLE_USERS", ranges: [{}, { source_id_gt: "z" }] },
        field: "ranges[1].source_id_gt",
      },
    },
  },
  takeVerificationSlot: {
    success: [
      { key: "cell 1", params: { ...cell, uuid }, status: 200 },
      { key: "operator", params: { ...cell, uuid: uuid.toUpperCase() }, status: 200 },
    ],
    bad: { ...badCells, ...badUuids },
  },
  releaseVerificationSlot: {
    success: [
      { key: "cell 1", params: { ...cell, uuid: newUuid() }, status: 200 },
      { key: "operator", params: { ...cell, uuid }, status: 200 },
    ],
    bad: { ...badCells, ...badUuids },
  },
  reportStatus: {
    success: [
      { key: "cell 1", params: cell, body: { sdk }, status: 200 },
      {
        key: "cell 2",
        params: { cell: "2" },
        body: {
          sdk,
          reconciliation: { outcome: "aborted", is_full: true, ended_ago_ms: 7, counts: { processed: 3 } },
          verification: {
            status: "needs_approval",
            is_applied: true,
            started_ago_ms: 60_000,
            counts: { missing: 2, other_cell: 1 },
            approval_reason: "too many",
          },
        },
        status: 200,
      },
    ],
    bad: {
      "no SDK": { params: cell, body: {}, field: "sdk" },
      "no version": { params: cell, body: { sdk: { name: "x" } }, field: "sdk.version" },
      "a version that is too long": {
        params: cell,
        body: { sdk: { name: "x", version: "1".repeat(65) } },
        field: "sdk.version",
      },
      "a version with a space": {
        params: cell,
        body: { sdk: { name: "x", version: "1 2" } },
        field: "sdk.version",
      },
      "an unknown field": { params: cell, body: { sdk, hostname: "a" }, field: "hostname" },
      "an unknown count": {
        params: cell,
        body: { sdk, reconciliation: { outcome: "done", counts: { lost: 1 } } },
        field: "reconciliation.counts.lost",
      },
      "a negative count": {
        params: cell,
        body: { sdk, verification: { status: "done", counts: { missing: -1 } } },
        field: "verification.counts.missing",
      },
      "a count that JSON does not represent exactly": {
        params: cell,
        body: { sdk, verification: { status: "done", counts: { missing: 2 ** 53 } } },
        field: "verification.counts.missing",
      },
      "a run that did nothing": {
        params: cell,
        body: { sdk, verification: { status: "not_due" } },
        field: "verification.status",
      },
      "an age before 1970": {
        params: cell,
        body: { sdk, reconciliation: { outcome: "done", ended_ago_ms: 315_360_000_001 } },
        field: "reconciliation.ended_ago_ms",
      },
      "a reason that is too long": {
        params: cell,
        body: { sdk, verification: { status: "needs_approval", approval_reason: "x".repeat(257) } },
        field: "verification.approval_reason",
      },
    },
  },
  getStatus: {
    success: [
      { key: "cell 1", params: cell, status: 200 },
      { key: "operator", params: cell, status: 200 },
    ],
    bad: badCells,
  },
  listCells: { success: [{ query: "page_size=1", status: 200 }], bad: badPages },
  addCell: {
    success: [
      {
        body: {
          cell_id: "9223372036854775807",
          name: "The last one",
          address: "https://last.example/base",
          location_hint: "weur",
        },
        status: 201,
      },
      { body: { cell_id: 31, name: "By number", address: "http://10.0.0.1:8080" }, status: 201 },
    ],
    bad: {
      "no id": { body: { name: "x", address: "https://x.example" }, field: "cell_id" },
      "a bad id": { body: { cell_id: "007", name: "x", address: "https://x.example" }, field: "cell_id" },
      "an empty name": { body: { cell_id: "8", name: "", address: "https://x.example" }, field: "name" },
      "an address without a scheme": {
        body: { cell_id: "8", name: "x", address: "x.example" },
        field: "address",
      },
      "an address of another scheme": {
        body: { cell_id: "8", name: "x", address: "ftp://x.example" },
        field: "address",
      },
      "an address with credentials": {
        body: { cell_id: "8", name: "x", address: "https://a:b@x.example" },
        field: "address",
      },
      "an address with a query": {
        body: { cell_id: "8", name: "x", address: "https://x.example/?a" },
        field: "address",
      },
      "an address that is not a URL": {
        body: { cell_id: "8", name: "x", address: "https://:0" },
        field: "address",
      },
      "a blank reason": {
        body: { cell_id: "8", name: "x", address: "https://x.example", reason: " " },
        field: "reason",
      },
      "an unknown location": {
        body: { cell_id: "8", name: "x", address: "https://x.example", location_hint: "moon" },
        field: "location_hint",
      },
    },
  },
  changeCell: {
    success: [
      { params: { cell: "2" }, body: { name: "Renamed", address: "https://cell-2.example" }, status: 200 },
    ],
    bad: {
      ...badCells,
      "no change": { body: {}, field: "body" },
      "only a reason": { body: { reason: "a test" }, field: "body" },
      "a long reason": { body: { name: "x", reason: "é".repeat(251) }, field: "reason" },
      "a bad address": { body: { address: "nowhere" }, field: "address" },
    },
  },
  freezeCell: {
    success: [
      { params: { cell: "2" }, status: 200 },
      { params: { cell: "2" }, body: { reason: "a test" }, status: 200 },
    ],
    bad: {
      ...badCells,
      "a blank reason": { params: { cell: "2" }, body: { reason: " " }, field: "reason" },
    },
  },
  drainCell: {
    success: [{ params: { cell: "2" }, body: { reason: "a test" }, status: 200 }],
    bad: {
      ...badCells,
      "a blank reason": { params: { cell: "2" }, body: { reason: " " }, field: "reason" },
    },
  },
  unfreezeCell: {
    success: [{ params: { cell: "2" }, body: { reason: "a test" }, status: 200 }],
    bad: {
      ...badCells,
      "a blank reason": { params: { cell: "2" }, body: { reason: " " }, field: "reason" },
    },
  },
  getRemoval: {
    success: [{ params: { cell: "2" }, status: 200 }],
    bad: {
      ...badCells,
      "a foreign cursor": { params: { cell: "2" }, query: "cursor=x", field: "cursor" },
    },
  },
  approveRemoval: {
    success: [
      {
        body: { export: [{ source_type: "RAILS_TABLE_ROUTES", count: 0, hash: NO_CLAIMS }] },
        status: 200,
        before: async (api) => ({ params: { cell: await drainedCell(api) } }),
      },
    ],
    elsewhere: { statuses: [202], file: "removals.ts" },
    bad: {
      ...badCells,
      "no export": { params: { cell: "2" }, body: {}, field: "export" },
      "a foreign cursor": { params: { cell: "2" }, body: { export: [], cursor: "x" }, field: "cursor" },
      "a bad hash": {
        params: { cell: "2" },
        body: { export: [{ source_type: "RAILS_TABLE_ROUTES", count: 0, hash: "x" }] },
        field: "export[0].hash",
      },
    },
  },
  stepRemoval: {
    success: [
      {
        body: { reason: "a test", limit: 5 },
        status: 200,
        before: async (api) => ({ params: { cell: await approvedCell(api) } }),
      },
    ],
    bad: {
      ...badCells,
      "no reason": { params: { cell: "2" }, body: {}, field: "reason" },
      "a blank reason": { params: { cell: "2" }, body: { reason: " " }, field: "reason" },
      "limit 0": { params: { cell: "2" }, body: { reason: "a test", limit: 0 }, field: "limit" },
      "a limit that is too large": {
        params: { cell: "2" },
        body: { reason: "a test", limit: 5_001 },
        field: "limit",
      },
    },
  },
  planTransfer: {
    success: [
      { key: "cell 1", body: { from: "1", ...moved }, status: 200 },
      { key: "operator", body: { from: 1, to: 2, scope: 9970, cursor: "" }, status: 200 },
    ],
    bad: {
      ...withoutUuid(badMoves),
      "a foreign cursor": { body: { ...moved, cursor: "x" }, field: "cursor" },
    },
  },
  prepareTransfer: {
    success: [
      {
        key: "cell 1",
        status: 200,
        before: async (api) => {
          await abortTransfers(api);
          return { body: { uuid: newUuid(), to: 2, scope: await ownedScope(api) } };
        },
      },
      {
        key: "operator",
        status: 200,
        before: async (api) => {
          await abortTransfers(api);
          const scope = await ownedScope(api);
          return { body: { uuid: newUuid(), from: "1", to: "2", scope, reason: "a test" } };
        },
      },
    ],
    bad: {
      ...badMoves,
      "no UUID": { body: moved, field: "uuid" },
      "an operator without a reason": {
        key: "operator",
        body: { uuid: newUuid(), from: "1", ...moved },
        field: "reason",
      },
      "a switch-back of a transfer to another cell": {
        body: { uuid: newUuid(), ...moved, switch_back_of: TRANSFER.id },
        field: "switch_back_of",
      },
      "a switch-back of nonsense": {
        body: { uuid: newUuid(), ...moved, switch_back_of: "x" },
        field: "switch_back_of",
      },
    },
  },
  listTransfers: {
    success: [
      { key: "cell 1", query: "to=2&page_size=2", status: 200, before: preparedTransfer },
      { key: "operator", status: 200 },
    ],
    bad: {
      ...badPages,
      "a source that is no cell id": { query: "from=01", field: "from" },
      "a destination that is no cell id": { query: "to=x", field: "to" },
    },
  },
  getTransfer: {
    success: [
      { key: "cell 1", params: TRANSFER, status: 200, before: preparedTransfer },
      { key: "cell 2", params: TRANSFER, status: 200, before: preparedTransfer },
    ],
    bad: badTransferIds,
  },
  acceptTransfer: {
    success: [
      { key: "cell 2", params: TRANSFER, status: 200, before: preparedTransfer },
      {
        key: "operator",
        params: TRANSFER,
        body: { reason: "a test" },
        status: 200,
        before: preparedTransfer,
      },
    ],
    bad: badSteps,
  },
  reportTransfer: {
    success: [
      {
        key: "cell 1",
        params: TRANSFER,
        body: { count: 0, hash: NO_CLAIMS },
        status: 200,
        before: preparedTransfer,
      },
      {
        key: "operator",
        params: TRANSFER,
        body: { side: "to", count: 3, hash: NO_CLAIMS, reason: "a test" },
        status: 200,
        before: preparedTransfer,
      },
    ],
    bad: {
      ...badTransferIds,
      "no count": { params: TRANSFER, body: { hash: NO_CLAIMS }, field: "count" },
      "a negative count": { params: TRANSFER, body: { count: -1, hash: NO_CLAIMS }, field: "count" },
      "a hash that is too short": { params: TRANSFER, body: { count: 0, hash: "0" }, field: "hash" },
      "an unknown side": { params: TRANSFER, body: { side: "x", count: 0, hash: NO_CLAIMS }, field: "side" },
      "an operator without a side": {
        key: "operator",
        params: TRANSFER,
        body: { count: 0, hash: NO_CLAIMS, reason: "a test" },
        field: "side",
      },
      "an operator without a reason": {
        key: "operator",
        params: TRANSFER,
        body: { side: "to", count: 0, hash: NO_CLAIMS },
        field: "reason",
      },
    },
  },
  cutTransfer: {
    success: [
      { key: "cell 1", params: TRANSFER, status: 200, before: verifiedTransfer },
      {
        key: "operator",
        params: TRANSFER,
        body: { reason: "a test" },
        status: 200,
        before: verifiedTransfer,
      },
    ],
    bad: badSteps,
  },
  abortTransfer: {
    success: [
      { key: "cell 1", params: TRANSFER, status: 200, before: preparedTransfer },
      { key: "cell 2", params: TRANSFER, status: 200, before: preparedTransfer },
      {
        key: "operator",
        params: TRANSFER,
        body: { reason: "a test" },
        status: 200,
        before: preparedTransfer,
      },
    ],
    bad: badSteps,
  },
  getGrowth: { success: [{ status: 200 }], bad: {} },
  startGrowth: {
    success: [{ body: { shards: 256, reason: "a test" }, status: 200, before: noOperation }],
    bad: {
      "one shard": { body: { shards: 1, reason: "a test" }, field: "shards" },
      "too many shards": { body: { shards: 257, reason: "a test" }, field: "shards" },
      "half a shard": { body: { shards: 4.5, reason: "a test" }, field: "shards" },
      "no reason": { body: { shards: 5 }, field: "reason" },
      "a blank reason": { body: { shards: 5, reason: " " }, field: "reason" },
    },
  },
  stepGrowth: { success: [{ status: 200, before: noOperation }], bad: {} },
  cutGrowth: {
    success: [{ body: { reason: "a test" }, status: 200, before: copiedGrowth }],
    bad: {
      "no reason": { body: {}, field: "reason" },
      "a blank reason": { body: { reason: " " }, field: "reason" },
    },
  },
  abortGrowth: {
    success: [{ body: { reason: "a test" }, status: 200, before: newGrowth }],
    bad: {
      "no reason": { body: {}, field: "reason" },
      "a blank reason": { body: { reason: " " }, field: "reason" },
    },
  },
  listOperations: { success: [{ status: 200 }], bad: {} },
  startRestore: {
    success: [
      { body: { id: newUuid(), kind: "restore", reason: "a test" }, status: 200, before: noOperation },
    ],
    bad: {
      "no id": { body: { kind: "restore", reason: "a test" }, field: "id" },
      "an id that is no UUID": { body: { id: "7", kind: "restore", reason: "a test" }, field: "id" },
      "another kind": { body: { id: newUuid(), kind: "growth", reason: "a test" }, field: "kind" },
      "no reason": { body: { id: newUuid(), kind: "restore" }, field: "reason" },
      "a blank reason": { body: { id: newUuid(), kind: "restore", reason: " " }, field: "reason" },
    },
  },
  endRestore: {
    success: [{ params: { operation: newUuid() }, body: { reason: "a test" }, status: 200 }],
    bad: {
      "no reason": { params: { operation: newUuid() }, body: {}, field: "reason" },
      "a blank reason": { params: { operation: newUuid() }, body: { reason: " " }, field: "reason" },
      "an id with a space": { params: { operation: "a b" }, body: { reason: "a test" }, field: "operation" },
    },
  },
  getUpgrade: { success: [{ status: 200 }], bad: {} },
  finishUpgrade: {
    success: [{ body: { format: 1, reason: "a test" }, status: 200 }],
    bad: {
      "a format below 0": { body: { format: -1, reason: "a test" }, field: "format" },
      "no format": { body: { reason: "a test" }, field: "format" },
      "no reason": { body: { format: 1 }, field: "reason" },
      "a blank reason": { body: { format: 1, reason: " " }, field: "reason" },
    },
  },
  mintKey: {
    success: [
      { body: { role: "cell", cell_id: 1, expires_in_s: 60, note: "for a test" }, status: 201 },
      { body: { role: "router" }, status: 201 },
      { body: { role: "scraper" }, status: 201 },
      { body: { role: "viewer" }, status: 201 },
      { body: { role: "bridge" }, status: 201 },
    ],
    bad: {
      "no role": { body: {}, field: "role" },
      "an unknown role": { body: { role: "admin" }, field: "role" },
      "a cell key without a cell": { body: { role: "cell" }, field: "cell_id" },
      "a viewer key with a cell": { body: { role: "viewer", cell_id: "1" }, field: "cell_id" },
      "a scraper key with a cell": { body: { role: "scraper", cell_id: "1" }, field: "cell_id" },
      "a bridge key with a cell": { body: { role: "bridge", cell_id: "1" }, field: "cell_id" },
      "a router key with a cell": { body: { role: "router", cell_id: "1" }, field: "cell_id" },
      "a lifetime of 0": { body: { role: "router", expires_in_s: 0 }, field: "expires_in_s" },
      "a lifetime of 401 days": {
        body: { role: "router", expires_in_s: 401 * 86_400 },
        field: "expires_in_s",
      },
      "a lifetime that is a string": { body: { role: "router", expires_in_s: "60" }, field: "expires_in_s" },
      "a blank reason": { body: { role: "router", reason: " " }, field: "reason" },
      "an empty note": { body: { role: "router", note: "" }, field: "note" },
    },
  },
  listKeys: { success: [{ query: "page_size=1", status: 200 }], bad: badPages },
  revokeKey: {
    success: [
      { params: { id: newUuid() }, body: { cell_id: "1" }, status: 200 },
      { params: { id: newUuid() }, status: 200 },
    ],
    bad: {
      "a bad id": { params: { id: "a.b" }, field: "id" },
      "a bad cell": { params: { id: uuid }, body: { cell_id: "x" }, field: "cell_id" },
      "a blank reason": { params: { id: uuid }, body: { reason: " " }, field: "reason" },
    },
  },
  listCredentialUses: {
    success: [
      { status: 200 },
      { query: `kind=certificate&id=${uuid}&id=${newUuid()}&page_size=1`, status: 200 },
    ],
    bad: {
      ...badPages,
      "an unknown kind": { query: "kind=password", field: "kind" },
      "a bad id": { query: `id=${uuid}&id=a.b`, field: "id[1]" },
    },
  },
  getIdentities: { success: [{ status: 200 }], bad: {} },
  changeIdentities: {
    success: [
      { status: 200, before: async (api) => ({ body: { ...(await identitiesOf(api)), dry_run: true } }) },
      { status: 200, before: async (api) => ({ body: await identitiesOf(api) }) },
    ],
    bad: badIdentities,
  },
  explainIdentity: {
    success: [{ body: { issuer: "https://forge.example", subject: "deployer" }, status: 200 }],
    bad: {
      "nothing to explain": { body: {}, field: "issuer" },
      "no subject": { body: { issuer: "https://forge.example" }, field: "subject" },
      "a certificate that is none": { body: { certificate: "no" }, field: "certificate" },
      "a certificate beside an issuer": {
        body: { certificate: "no", issuer: "https://forge.example" },
        field: "certificate",
      },
    },
  },
  listTypes: {
    success: [
      { key: "router", status: 200 },
      { key: "cell 1", status: 200 },
    ],
    bad: {},
  },
  getTypes: { success: [{ status: 200 }], bad: {} },
  changeTypes: {
    success: [
      {
        status: 200,
        before: async (api) => {
          const { version, types: before } = await declaredTypes(api);
          const more = { ...before.subject_types, NEW: { number: 99 } };
          return { body: { version, types: { ...before, subject_types: more }, dry_run: true } };
        },
      },
      { status: 200, before: async (api) => ({ body: pick(await declaredTypes(api)) }) },
    ],
    bad: badTypes,
  },
  listAudit: {
    success: [
      { query: "action=add_cell&cell=1&target=1&page_size=1", status: 200 },
      { query: `key_id=${uuid}&after=2026-01-01T00:00:00Z&before=2027-01-01T00:00:00Z`, status: 200 },
    ],
    bad: {
      ...badPages,
      "an unknown action": { query: "action=look", field: "action" },
      "a bad cell": { query: "cell=x", field: "cell" },
      "a bad key": { query: "key_id=a.b", field: "key_id" },
      "a bad target": { query: "target=a.b", field: "target" },
      "a bad time": { query: "after=yesterday", field: "after" },
    },
  },
  searchRecords: {
    success: [
      {
        query: "subject_type=NAMESPACE&subject_id=7&page_size=1",
        status: 200,
        before: async (api) => {
          await committed(api);
          return {};
        },
      },
      {
        query: "subject_type=NAMESPACE&subject_id=nobody",
        status: 200,
        before: async (api) => ({ key: await mintKeyOf("viewer", api) }),
      },
    ],
    bad: {
      "no type": { query: "subject_id=7", field: "subject_type" },
      "an undeclared type": {
        query: "subject_type=PET&subject_id=7",
        field: "subject_type",
        isUndeclared: true,
      },
      "no id": { query: "subject_type=NAMESPACE", field: "subject_id" },
      "an empty id": { query: "subject_type=NAMESPACE&subject_id=", field: "subject_id" },
      "an id with a control character": {
        query: "subject_type=NAMESPACE&subject_id=a%0Ab",
        field: "subject_id",
      },
      ...within("subject_type=NAMESPACE&subject_id=7", badPages),
    },
  },
  listHistory: {
    success: [
      {
        params: { bucket_type: "ROUTES" },
        query: "page_size=1",
        status: 200,
        before: async (api) => ({ params: { bucket_type: "ROUTES", value: (await committed(api)).value } }),
      },
      {
        params: { bucket_type: "ROUTES", value: freshName() },
        query: "at=2026-01-01T00:00:00Z",
        status: 200,
        before: async (api) => ({ key: await mintKeyOf("viewer", api) }),
      },
    ],
    bad: {
      ...badNames,
      ...Object.fromEntries(
        Object.entries({ ...badPages, "a bad time": { query: "at=yesterday", field: "at" } }).map(
          ([name, bad]) => [name, { ...bad, params: { bucket_type: "ROUTES", value: "a" } }],
        ),
      ),
    },
  },
  eraseHistory: {
    success: [
      { body: { bucket: claim("a")["bucket"], reason: "a test", dry_run: true }, status: 200 },
      { body: { bucket: claim("a")["bucket"], reason: "a test", dry_run: false }, status: 200 },
    ],
    bad: {
      "no bucket": { body: { reason: "a test", dry_run: true }, field: "bucket" },
      "an unknown bucket type": {
        body: { bucket: { type: "NAMES", value: "a" }, reason: "a test", dry_run: true },
        field: "bucket.type",
        isUndeclared: true,
      },
      "an empty value": {
        body: { bucket: { type: "ROUTES", value: "" }, reason: "a test", dry_run: true },
        field: "bucket.value",
      },
      "no reason": { body: { bucket: claim("a")["bucket"], dry_run: true }, field: "reason" },
      "a blank reason": {
        body: { bucket: claim("a")["bucket"], reason: " ", dry_run: true },
        field: "reason",
      },
      "no dry_run": { body: { bucket: claim("a")["bucket"], reason: "a test" }, field: "dry_run" },
    },
  },
  listWebhooks: { success: [{ status: 200 }], bad: {} },
  addWebhook: {
    success: [{ status: 201, body: { url: "https://hooks.invalid/a", enabled: false } }],
    bad: {
      "no url": { body: {}, field: "url" },
      "a url with a query": { body: { url: "https://hooks.invalid/?a=1" }, field: "url" },
      "a url with credentials": { body: { url: "https://a:b@hooks.invalid/" }, field: "url" },
      "a private host": { body: { url: "https://10.0.0.1/" }, field: "url" },
      "plain http": { body: { url: "http://hooks.invalid/" }, field: "url" },
      "an unknown event": {
        body: { url: "https://hooks.invalid/", events: ["look"] },
        field: "events[0]",
      },
      "an event twice": {
        body: { url: "https://hooks.invalid/", events: ["cron_failed", "cron_failed"] },
        field: "events",
      },
      "a threshold of 0": {
        body: { url: "https://hooks.invalid/", thresholds: { stale_leases: 0 } },
        field: "thresholds.stale_leases",
      },
      "an empty reason": { body: { url: "https://hooks.invalid/", reason: " " }, field: "reason" },
    },
  },
  changeWebhook: {
    success: [{ params: { id: uuid }, body: { enabled: false }, status: 200, before: webhook }],
    bad: {
      "no change": { params: { id: uuid }, body: { reason: "a test" }, field: "body" },
      "a loopback host": { params: { id: uuid }, body: { url: "https://[::1]/" }, field: "url" },
      "a negative time": { params: { id: uuid }, body: { for_s: -1 }, field: "for_s" },
    },
  },
  removeWebhook: {
    success: [{ params: { id: uuid }, status: 200, before: webhook }],
    bad: { "an empty reason": { params: { id: uuid }, body: { reason: " " }, field: "reason" } },
  },
  testWebhook: {
    success: [{ params: { id: uuid }, status: 200, before: webhook }],
    bad: { "a bad id": badId },
  },
  listDeliveries: {
    success: [{ params: { id: uuid }, status: 200, before: webhook }],
    bad: { "a bad id": badId },
  },
  getPart: {
    success: [
      { params: { part: "shard-0" }, status: 200 },
      { params: { part: "ledger-1" }, status: 200 },
    ],
    bad: badParts,
  },
  reconcilePart: {
    success: [
      { params: { part: "shard-0" }, body: { dry_run: false, reason: "a test" }, status: 200 },
      { params: { part: "ledger-1" }, body: { dry_run: true, reason: "a test" }, status: 200 },
    ],
    bad: {
      "no dry_run": { params: { part: "shard-0" }, body: { reason: "a test" }, field: "dry_run" },
      "a bad declare_lost": {
        params: { part: "shard-0" },
        body: { dry_run: true, declare_lost: "yes", reason: "a test" },
        field: "declare_lost",
      },
      "no reason": { params: { part: "shard-0" }, body: { dry_run: true }, field: "reason" },
      "a blank reason": {
        params: { part: "shard-0" },
        body: { dry_run: true, reason: "  " },
        field: "reason",
      },
      "a long reason": {
        params: { part: "shard-0" },
        body: { dry_run: true, reason: "é".repeat(251) },
        field: "reason",
      },
    },
  },
  finishPart: {
    success: [
      { params: { part: "shard-0" }, body: { reason: "a test" }, status: 200 },
      { params: { part: "ledger-1" }, body: { reason: "a test" }, status: 200 },
    ],
    bad: { "no reason": { params: { part: "shard-0" }, body: {}, field: "reason" } },
  },
  getScrub: {
    success: [
      { params: { part: "shard-0" }, status: 200 },
      { params: { part: "ledger-1" }, status: 200 },
    ],
    bad: { "the directory": { params: { part: "directory" }, field: "part" } },
  },
  stepScrub: {
    success: [
      { params: { part: "shard-0" }, body: { restart: true }, status: 200 },
      { params: { part: "ledger-1" }, body: { restart: false }, status: 200 },
    ],
    bad: {
      "no restart": { params: { part: "shard-0" }, body: {}, field: "restart" },
      "the directory": { params: { part: "directory" }, body: { restart: false }, field: "part" },
    },
  },
  listStaleLeases: {
    success: [{ query: "older_than_s=0&cell=1&page_size=5", status: 200 }, { status: 200 }],
    bad: {
      ...badPages,
      "a negative age": { query: "older_than_s=-1", field: "older_than_s" },
      "an age that is not a number": { query: "older_than_s=1h", field: "older_than_s" },
      "a bad cell": { query: "cell=x", field: "cell" },
    },
  },
  listFailedCopies: {
    success: [
      { query: "page_size=5", status: 200 },
      { before: async (api) => ({ key: await mintKeyOf("viewer", api) }), status: 200 },
    ],
    bad: badPages,
  },
  listLimits: {
    success: [
      { key: "router", status: 200 },
      { key: "cell 1", status: 200 },
    ],
    bad: {},
  },
  getMetrics: {
    success: [
      { key: "operator", status: 200 },
      { before: async (api) => ({ key: await mintKeyOf("scraper", api) }), status: 200 },
    ],
    bad: {},
  },
  getHealth: { success: [{ key: null, status: 200 }], bad: {} },
  getReadiness: { success: [{ key: null, status: 200 }], bad: {} },
  getOpenApi: { success: [{ key: null, status: 200 }], bad: {} },
  getDocs: { success: [{ key: null, status: 200 }], bad: {} },
  getRoot: { success: [{ key: null, status: 200 }], bad: {} },
};
