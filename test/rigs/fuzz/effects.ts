/** The rows that a successful request may change, and the audit entries of these changes. */
import type { AuditAction } from "../../../src/coordinator/capabilities/audit/audit.ts";
import type { DeclaredTypes } from "../../../src/coordinator/capabilities/types/messages.ts";
import { isSameType, Types, type TypeEntry } from "../../../src/common/types/types.ts";
import type { RouteId } from "../../../src/coordinator/api/contract.ts";
import { shipped } from "../../support/types.ts";
import type { FuzzServer, Received } from "./server.ts";
import { bodyOf, routeOf, type FuzzRequest } from "./fuzz-request.ts";
import { D1, type Change, type Row } from "./state.ts";

/** Returns what is wrong, or undefined. */
type Effect = (
  changes: readonly Change[],
  request: FuzzRequest,
  answer: Record<string, unknown>,
  server: FuzzServer,
  status: number,
) => string | undefined;

/**
 * The first use of an object writes its name, its schema version and its placement (docs/reference/limits.md,
 * "The first use of an object ever").
 */
const BIRTH = new Set(["object_name", "tables", "capability_steps", "placement"]);
const isBirth = ({ table, key, before }: Change): boolean =>
  table === "meta" && before === undefined && BIRTH.has(key);

/** The Worker copies a changed set of types to D1 in the background, so a later request may see it. */
const isCopyOfTypes = ({ object, table, after }: Change): boolean =>
  object === D1 && table === "type_sets" && after !== undefined;

const made = (change: Change): boolean => change.before === undefined && change.after !== undefined;
const gone = (change: Change): boolean => change.before !== undefined && change.after === undefined;

/**
 * Removes records of used credentials, and changes of a cron run, which may overlap with a request. A running
 * cron has a row without an end. It deletes in D1 the leases that are not open, and nothing else, as all
 * rows are too young. In objects it deletes the audit entries that an earlier run has copied to D1. After its
 * end, it makes alerts and their messages, continues a growth, and scrubs.
 */
export function withoutCron(changes: readonly Change[], server: Pick<FuzzServer, "state">): Change[] {
  const { state } = server;
  const isRunning =
    changesIn(changes, D1, "cron_runs").length > 0 ||
    state.rows(/^d1$/, "cron_runs").some(({ finished_at_ms: finished }) => finished === null);
  const copied = new Set(state.rows(/^d1$/, "audit").map(({ id }) => id));
  const isCopied = (change: Change): boolean =>
    change.table === "audit" && gone(change) && copied.has(change.before?.["id"]);
  return changes.filter((change) => {
    if (change.object !== D1) return !isScrub(change) && !isCopied(change);
    if (gone(change)) return !isUse(change) && !(isRunning && isNotOpen(change, server));
    return !isUse(change) && !isRunning && !isAlertOrMessage(change);
  });
}

function isNotOpen({ table, before }: Change, server: Pick<FuzzServer, "state">): boolean {
  const { cell_id: cell, uuid } = before ?? {};
  return table === "open_leases" && storedLease(server, String(cell), String(uuid))?.["decided"] !== 0;
}

const isScrub = ({ table, key }: Change): boolean => table === "meta" && key === "scrub";

/** Each request may be the first of its key in an hour, which is recorded after the answer. */
const isUse = ({ table, after }: Change): boolean => table === "credential_uses" && after !== undefined;

const isAlertOrMessage = ({ table, after }: Change): boolean =>
  table === "webhook_alerts" || (table === "webhook_deliveries" && after?.["event"] !== "test");

const changesIn = (changes: readonly Change[], object: string | RegExp, table: string): Change[] =>
  changes.filter(
    (each) =>
      each.table === table &&
      (typeof object === "string" ? each.object === object : object.test(each.object)),
  );

/** Returns an unexpected change, if there is one. */
const others = (
  changes: readonly Change[],
  ...expected: readonly (readonly Change[])[]
): string | undefined => {
  const known = new Set(expected.flat());
  const unexpected = changes.find((change) => !known.has(change));
  return unexpected === undefined ? undefined : `another row changed: ${JSON.stringify(unexpected)}`;
};

const none: Effect = (changes) => others(changes);

const SHARD = /^shard-/;

function leaseOf(answer: Record<string, unknown>): {
  uuid: string;
  cell_id: string;
  counts: Record<string, number>;
} {
  return answer["lease"] as { uuid: string; cell_id: string; counts: Record<string, number> };
}

const storedLease = ({ state }: Pick<FuzzServer, "state">, cell: string, uuid: string): Row | undefined =>
  state.rows(new RegExp(`^cell-${cell}$`), "lease").find((row) => row["lease"] === uuid);

/** 201: a lease was created. 200: it existed before. */
const begin: Effect = (changes, _, answer, server, status) => {
  const { uuid, cell_id: cell, counts } = leaseOf(answer);
  if (status === 200)
    return storedLease(server, cell, uuid) === undefined
      ? "the existing lease is not stored"
      : others(changes, typesInUse(changes));
  const leases = changesIn(changes, `cell-${cell}`, "lease").filter(
    (change) => made(change) && change.key === uuid && change.after?.["state"] === "GRANTED",
  );
  if (leases.length !== 1) return "not exactly one lease was created";
  const holds = changesIn(changes, SHARD, "hold").filter(
    (change) => made(change) && change.after?.["lease"] === uuid && change.after["cell"] === cell,
  );
  const expectedHolds =
    (counts["creates"] ?? 0) +
    (counts["destroys"] ?? 0) +
    (counts["replaces"] ?? 0) -
    (counts["missing"] ?? 0);
  if (holds.length !== expectedHolds) return `${holds.length} holds were made for ${expectedHolds} names`;
  return others(changes, leases, holds, typesInUse(changes));
};

const nameOf = (row: Row | undefined): string =>
  `${String(row?.["bucket_type"])} ${String(row?.["canonical"])}`;

/** The rows that a decision may change: the lease, its holds, and on commit the claims under them. */
const decide =
  (state: "COMMITTED" | "ROLLED_BACK"): Effect =>
  (changes, _, answer, server) => {
    const { uuid, cell_id: cell } = leaseOf(answer);
    const left = server.state
      .rows(SHARD, "hold")
      .filter((row) => row["lease"] === uuid && row["cell"] === cell);
    if (left.length > 0) return `${left.length} holds of the decided lease remain`;
    if (changes.length === 0)
      return storedLease(server, cell, uuid)?.["state"] === state
        ? undefined
        : `the stored lease is not ${state}`;
    const ledger = `cell-${cell}`;
    const leases = changesIn(changes, ledger, "lease").filter(
      ({ key, after, before }) => key === uuid && after?.["state"] === state && before?.["state"] !== state,
    );
    if (leases.length !== 1) return "the lease was not decided";
    const isFence = leases[0]?.after?.["fence"] === 1;
    const holds = changesIn(changes, SHARD, "hold").filter(
      (change) => gone(change) && change.before?.["lease"] === uuid && change.before["cell"] === cell,
    );
    const held = new Map(
      holds.map(({ object, before }) => [`${object} ${nameOf(before)}`, String(before?.["kind"])]),
    );
    const claims = changesIn(changes, SHARD, "claim").filter((change) => {
      const kind = held.get(`${change.object} ${nameOf(change.before ?? change.after)}`);
      return (
        state === "COMMITTED" &&
        (made(change) ? kind === "create" : gone(change) ? kind === "destroy" : kind === "replace")
      );
    });
    if (state === "COMMITTED" && claims.length !== holds.length)
      return `${claims.length} claims changed under ${holds.length} holds`;
    const ended = claims.filter((change) => !made(change));
    const past = changesIn(changes, SHARD, "past_claim").filter(
      (change) => made(change) && change.after?.["ended_by"] === uuid,
    );
    if (past.length !== ended.length)
      return `${past.length} past claims were kept of ${ended.length} that have ended`;
    return others(
      changes,
      leases,
      holds,
      claims,
      past,
      isFence ? changesIn(changes, ledger, "meta").filter(({ key }) => key === "fences") : [],
    );
  };

const cellRow =
  (isNew: boolean): Effect =>
  (changes, _, answer) => {
    const { cell_id: id } = answer["cell"] as { cell_id: string };
    const rows = changesIn(changes, "directory", "cell").filter(
      (change) => change.key === id && made(change) === isNew && !gone(change),
    );
    return rows.length === 1
      ? others(changes, rows, directoryPosition(changes))
      : `${rows.length} rows of the cell changed`;
  };

const setState: Effect = (changes, _, answer) => {
  const { cell_id: id } = answer["cell"] as { cell_id: string };
  return others(
    changes,
    changesIn(changes, `cell-${id}`, "meta").filter(({ key }) =>
      ["cell_state", "cell_state_set_at_ms", "cell_state_version"].includes(key),
    ),
  );
};

const REMOVAL_ROWS = new Set([
  "removal",
  "cell_state",
  "cell_state_set_at_ms",
  "cell_state_version",
  "status",
]);

/**
 * The state of the removal. A step may also end claims of the cell with a lease, and no other cell's. The
 * last one marks the cell in the directory.
 */
const removal: Effect = (changes, request) => {
  const cell = request.params?.["cell"] ?? "";
  const ledger = `cell-${cell}`;
  const isOwn = ({ before, after }: Change): boolean => (before ?? after)?.["cell"] === cell;
  const ended =
    request.id === "stepRemoval"
      ? [
          ...changesIn(changes, ledger, "lease"),
          ...changesIn(changes, SHARD, "hold").filter(isOwn),
          ...changesIn(changes, SHARD, "claim").filter((change) => gone(change) && isOwn(change)),
          ...changesIn(changes, SHARD, "past_claim").filter((change) => made(change) && isOwn(change)),
          ...changesIn(changes, "directory", "cell").filter((change) => isOwn(change) && isMark(change)),
          ...directoryPosition(changes),
        ]
      : [];
  const rows = changesIn(changes, ledger, "meta").filter(({ key }) => REMOVAL_ROWS.has(key));
  return others(changes, rows, ended);
};

/** Whether the change of a cell only marks it as removed. */
const isMark = ({ before, after }: Change): boolean =>
  before?.["removed_at_ms"] === null &&
  JSON.stringify({ ...before, ...updated(after), removed_at_ms: after?.["removed_at_ms"] }) ===
    JSON.stringify(after);

/**
 * The types of a begin come into use before the ledger is asked, so also if the begin is refused then (T2).
 * Nothing else of the set changes.
 */
function typesInUse(changes: readonly Change[]): Change[] {
  const sets = changesIn(changes, "directory", "meta").filter(
    ({ key, before, after }) => key === "types" && isOnlyUse(setOf(before), setOf(after)),
  );
  return sets.length === 0 ? [] : [...sets, ...directoryPosition(changes)];
}

/** The shipped set is not stored, so there may be nothing to compare with. */
function isOnlyUse(before: readonly TypeEntry[] | undefined, after: readonly TypeEntry[] = []): boolean {
  const old = new Types(before ?? shipped.entries);
  return (
    after.length === old.entries.length &&
    after.every((entry) => {
      const own = old.named(entry.kind, entry.name);
      return own !== undefined && isSameType(own, entry) && (entry.isInUse || !own.isInUse);
    })
  );
}

function setOf(row: Row | undefined): readonly TypeEntry[] | undefined {
  const value = row?.["value"];
  return typeof value === "string" ? (JSON.parse(value) as DeclaredTypes).entries : undefined;
}

const declare: Effect = (changes, _, answer) => {
  if (answer["dry_run"] === true) return others(changes);
  const sets = changesIn(changes, "directory", "meta").filter(({ key }) => key === "types");
  return others(changes, sets, sets.length === 0 ? [] : directoryPosition(changes));
};

const identify: Effect = (changes, _, answer) => {
  if (answer["dry_run"] === true) return others(changes);
  const sets = changesIn(changes, "directory", "meta").filter(({ key }) => key === "identities");
  return others(changes, sets, sets.length === 0 ? [] : directoryPosition(changes));
};

/** The operations that run. */
const operationRows = (changes: readonly Change[]): Change[] => [
  ...changesIn(changes, "directory", "meta").filter(({ key }) => key === "operations"),
  ...directoryPosition(changes),
];

const operate: Effect = (changes) => others(changes, operationRows(changes));

const directoryPosition = (changes: readonly Change[]): Change[] =>
  changesIn(changes, "directory", "meta").filter(({ key }) => key === "position");

const mint: Effect = (changes, _, answer) => {
  const rows = changesIn(changes, "directory", "minted_key").filter(
    (change) => made(change) && change.key === answer["id"],
  );
  return rows.length === 1 ? others(changes, rows, directoryPosition(changes)) : "the key was not recorded";
};

const revoke: Effect = (changes, _, answer) => {
  const { id, cell_id: cell } = answer["key"] as { id: string; cell_id: string | null };
  const rows = changesIn(changes, "directory", "minted_key").filter(
    ({ key, after }) => key === id && after?.["revoked_at_ms"] !== null,
  );
  const revoked = changesIn(changes, `cell-${cell}`, "revoked_key").filter(({ key }) => key === id);
  return others(changes, rows, revoked, directoryPosition(changes));
};

/** The cell's slot and its place in the queue, and expired slots and places of other cells. */
const slot: Effect = (changes, request) =>
  others(
    changes,
    ["verification_slot", "verification_place"]
      .flatMap((table) => changesIn(changes, "directory", table))
      .filter((change) => gone(change) || change.key === request.params?.["cell"]),
  );

/** The rows of `meta` that an accepted loss changes, and for a shard the loss until it is finished. */
const ACCEPTED = {
  directory: ["history_accepted", "position", "types", "identities"],
  ledger: ["history_accepted", "cell_state_version"],
  shard: ["history_accepted", "history_lost", "past_complete_since_ms"],
};

/** The name of a part's object in `Change.object`. */
const objectOf = (answer: Record<string, unknown>): string =>
  (answer["part"] as { id: string }).id.replace("ledger-", "cell-");

/**
 * No part has gone back in time, so only a declared loss changes something. Nothing is lost, so nothing is
 * rebuilt or restored (H6 to H8).
 */
const reconcile: Effect = (changes, request, answer) => {
  const { dry_run: _, part: __, cell_state: ___, ...found } = answer;
  if (/[1-9]/.test(JSON.stringify(found))) return `something was lost: ${JSON.stringify(found)}`;
  const body = JSON.parse(Buffer.from(bodyOf(request) ?? []).toString()) as Record<string, unknown>;
  if (body["declare_lost"] !== true || body["dry_run"] === true) return others(changes);
  const object = objectOf(answer);
  const kind = object === "directory" ? "directory" : SHARD.test(object) ? "shard" : "ledger";
  const rows = [
    ...changesIn(changes, object, "meta").filter(({ key }) => ACCEPTED[kind].includes(key)),
    ...(kind === "shard" ? operationRows(changes) : []),
  ];
  if (!rows.some(({ key }) => key === "history_accepted")) return "the loss was not accepted";
  const marked = {
    // The cron copies the keys again.
    directory: () => changesIn(changes, D1, "keys").filter((change) => isOnly(change, { position: 0 })),
    // The cron copies the open leases again.
    ledger: () =>
      changesIn(changes, object, "lease").filter(
        (change) =>
          change.after?.["state"] === "GRANTED" && isOnly(change, { position: change.after["position"] }),
      ),
    // The ledger may have cut each transfer (Y6).
    shard: () =>
      changesIn(changes, object, "range_hold").filter((change) => isOnly(change, { is_precommitted: 1 })),
  };
  return others(changes, rows, marked[kind]());
};

/** Whether a row has these values now, and nothing else of it has changed. */
const isOnly = ({ before, after }: Change, values: Row): boolean =>
  before !== undefined && JSON.stringify({ ...before, ...values }) === JSON.stringify(after);

const finish: Effect = (changes, _, answer) =>
  others(
    changes,
    changesIn(changes, objectOf(answer), "meta").filter(
      (change) => (change.key === "history_lost" && gone(change)) || change.key === "past_complete_since_ms",
    ),
    operationRows(changes),
  );

/** Past claims of the name, as many as the answer says, and nothing of its claim. */
const erase: Effect = (changes, _, answer) => {
  if (answer["dry_run"] === true) return others(changes);
  const past = changesIn(changes, SHARD, "past_claim").filter(gone);
  if (past.length !== answer["erased"]) return `${past.length} past claims were erased`;
  const names = new Set(past.map(({ object, before }) => `${object} ${nameOf(before)}`));
  return names.size > 1 ? "past claims of several names were erased" : others(changes, past);
};

/** The row of the cell's status, and the one that counts contradictions that a reconciliation has found. */
const statusRow: Effect = (changes, request) =>
  others(changes, [
    ...changesIn(changes, `cell-${request.params?.["cell"]}`, "meta").filter(({ key }) => key === "status"),
    ...contradictionsIn(changes, request),
  ]);

/**
 * The growth and the placement in the directory, with the copy in D1. Shards note the growth, copy names to
 * other shards, and delete those that have moved.
 */
const growing: Effect = (changes) => {
  const rows = changesIn(changes, "directory", "meta").filter(
    ({ key }) => key === "growth" || key === "placement",
  );
  return others(
    changes,
    rows,
    directoryPosition(changes),
    changesIn(changes, D1, "growths"),
    changes.filter(({ object }) => SHARD.test(object)),
  );
};

/** The row of the lease, unless it was renewed just before with the same reason. */
const renewal: Effect = (changes, _, answer) => {
  const { uuid, cell_id: cell } = leaseOf(answer);
  return others(
    changes,
    changesIn(changes, `cell-${cell}`, "lease").filter(
      ({ key, before, after }) =>
        key === uuid && before?.["state"] === "GRANTED" && after?.["state"] === "GRANTED",
    ),
  );
};

/** The record of the transfer, its lease, and its range holds, and after a cut the claims of its scope. */
const transfer: Effect = (changes, _, answer) => {
  const { uuid, to, scope, state } = answer["transfer"] as Record<"uuid" | "to" | "scope" | "state", string>;
  const isCut = state === "CUT" || state === "FINISHED";
  const isMoved = ({ before, after }: Change): boolean =>
    isCut && before?.["scope"] === scope && after?.["scope"] === scope && after["cell"] === to;
  const isOwn = ({ before, after }: Change): boolean => (before ?? after)?.["lease"] === uuid;
  return others(
    changes,
    ["transfer", "lease"].flatMap((table) =>
      changesIn(changes, `cell-${to}`, table).filter(({ key }) => key === uuid),
    ),
    changesIn(changes, SHARD, "range_hold").filter(isOwn),
    changesIn(changes, SHARD, "claim").filter(isMoved),
    changesIn(changes, SHARD, "past_claim").filter(
      (change) => isCut && made(change) && change.after?.["ended_by"] === uuid,
    ),
  );
};

const contradictionsIn = (changes: readonly Change[], request: FuzzRequest): Change[] =>
  changesIn(changes, `cell-${request.params?.["cell"]}`, "meta").filter(
    ({ key }) => key === "contradictions",
  );

/** The row of the webhook, and what is removed with it. A removal may find nothing else. */
const webhook: Effect = (changes) =>
  others(
    changes,
    ["webhooks", "webhook_alerts", "webhook_deliveries"].flatMap((table) => changesIn(changes, D1, table)),
  );

/**
 * The effects of routes that write. A writing route without an entry fails. Reading routes without an entry
 * change nothing.
 */
const effects: Partial<Record<RouteId, Effect>> = {
  beginLease: begin,
  beginLeaseWithNewId: (changes, request, answer, server, status) =>
    status === 201 ? begin(changes, request, answer, server, status) : "no lease was created",
  commitLease: decide("COMMITTED"),
  rollbackLease: decide("ROLLED_BACK"),
  renewLease: renewal,
  lookupRecords: none,
  lookupRoutes: none,
  classify: none,
  digestRecords: none,
  planTransfer: none,
  prepareTransfer: transfer,
  acceptTransfer: transfer,
  reportTransfer: transfer,
  cutTransfer: transfer,
  abortTransfer: transfer,
  takeVerificationSlot: slot,
  releaseVerificationSlot: slot,
  reportStatus: statusRow,
  addCell: cellRow(true),
  changeCell: cellRow(false),
  changeTypes: declare,
  changeIdentities: identify,
  explainIdentity: none,
  freezeCell: setState,
  drainCell: setState,
  unfreezeCell: setState,
  approveRemoval: removal,
  stepRemoval: removal,
  startGrowth: growing,
  stepGrowth: growing,
  cutGrowth: growing,
  abortGrowth: growing,
  startRestore: operate,
  endRestore: operate,
  // All code speaks one format so far.
  finishUpgrade: none,
  mintKey: mint,
  revokeKey: revoke,
  eraseHistory: erase,
  reconcilePart: reconcile,
  finishPart: finish,
  stepScrub: none,
  addWebhook: webhook,
  changeWebhook: webhook,
  removeWebhook: webhook,
  testWebhook: webhook,
};

export function wrongEffect(
  all: readonly Change[],
  request: FuzzRequest,
  received: Received,
  server: FuzzServer,
): string | undefined {
  const changes = withoutCron(all, server).filter((change) => !isBirth(change) && !isCopyOfTypes(change));
  const real = changes.filter((change) => !isAudit(change));
  const entries = changes.filter((change) => isAudit(change));
  // A run of the cron may have moved an entry from an object to D1 meanwhile.
  const moved = changesIn(all, D1, "audit").filter(made);
  return (
    wrongRows(real, request, received, server) ??
    wrongEntries(entries, moved, real, request, received, server)
  );
}

function wrongRows(
  real: readonly Change[],
  request: FuzzRequest,
  { status, text }: Received,
  server: FuzzServer,
): string | undefined {
  // A refusal of a slot gives the cell a place in the queue.
  if (status === 429 && request.id === "takeVerificationSlot") return slot(real, request, {}, server, status);
  if (status >= 300) {
    const isBegin = request.id === "beginLease" || request.id === "beginLeaseWithNewId";
    // A refused commit is counted (U4).
    const counted = request.id === "commitLease" ? contradictionsIn(real, request) : [];
    return others(real, isBegin ? typesInUse(real) : counted);
  }
  const isRead = routeOf(request.id).method === "GET";
  const effect = effects[request.id] ?? (isRead ? none : undefined);
  if (effect === undefined) return `test/rigs/fuzz/effects.ts does not list what ${request.id} may change`;
  return effect(real, request, isRead ? {} : (JSON.parse(text) as Record<string, unknown>), server, status);
}

const isAudit = ({ table }: Change): boolean => table === "audit";

/** The routes whose changes are on record if an operator makes them (O1). */
const audited: Partial<Record<RouteId, AuditAction | readonly AuditAction[]>> = {
  beginLease: "begin_lease",
  beginLeaseWithNewId: "begin_lease",
  commitLease: "commit_lease",
  rollbackLease: "rollback_lease",
  prepareTransfer: "prepare_transfer",
  acceptTransfer: "accept_transfer",
  reportTransfer: "report_transfer",
  cutTransfer: "cut_transfer",
  abortTransfer: "abort_transfer",
  addCell: "add_cell",
  changeCell: "change_cell",
  changeTypes: "change_types",
  changeIdentities: "change_identities",
  freezeCell: "freeze_cell",
  unfreezeCell: ["unfreeze_cell", "undrain_cell"],
  drainCell: "drain_cell",
  stepRemoval: ["start_removal", "remove_cell"],
  startGrowth: "start_growth",
  cutGrowth: "cut_growth",
  abortGrowth: "abort_growth",
  startRestore: "start_restore",
  endRestore: "end_restore",
  finishUpgrade: "finish_upgrade",
  mintKey: "mint_key",
  revokeKey: "revoke_key",
  reconcilePart: "reconcile_part",
  finishPart: "finish_part",
  eraseHistory: "erase_history",
  addWebhook: "add_webhook",
  changeWebhook: "change_webhook",
  removeWebhook: "remove_webhook",
  testWebhook: "test_webhook",
};

/** Rows of `meta` that change with calls that have no entry: those that change nothing but a version (A2). */
const VERSIONS = new Set(["cell_state_set_at_ms", "cell_state_version", "position"]);

/** A ledger without a stored state is active. A cell's version is the time of its last change. */
const isVersion = ({ table, key, before, after }: Change): boolean =>
  table === "cell"
    ? before !== undefined && JSON.stringify({ ...before, ...updated(after) }) === JSON.stringify(after)
    : table === "meta" &&
      (VERSIONS.has(key) || (key === "cell_state" && before === undefined && after?.["value"] === "ACTIVE"));

const updated = (row: Row | undefined): object => ({ updated_at_ms: row?.["updated_at_ms"] });

/** Steps of a transfer that have entries also if a cell takes them (O1). */
const auditedOfCells: ReadonlySet<RouteId> = new Set(["acceptTransfer", "cutTransfer", "abortTransfer"]);

/**
 * Checks that a change by an operator, and a step of a transfer by a cell, has one entry in each object that
 * made it, and nothing else has one (O1). The cron removes entries from objects once D1 has them (O2).
 */
function wrongEntries(
  entries: readonly Change[],
  moved: readonly Change[],
  real: readonly Change[],
  { id, key }: FuzzRequest,
  { status }: Received,
  server: FuzzServer,
): string | undefined {
  const copied = new Set(server.state.rows(/^d1$/, "audit").map((row) => row["id"]));
  const lost = entries.find((change) => !made(change) && !copied.has(change.before?.["id"]));
  if (lost !== undefined) return `an audit entry was changed or lost: ${JSON.stringify(lost)}`;
  const own = entries.filter(
    (change) => made(change) && (change.object !== D1 || change.after?.["part"] === D1),
  );
  const isAudited = key === "operator" || auditedOfCells.has(id);
  const actions: readonly unknown[] = isAudited && status < 300 ? [audited[id] ?? []].flat() : [];
  const foreign = own.find(({ after }) => !actions.includes(after?.["action"]));
  if (foreign !== undefined) return `an unexpected audit entry: ${JSON.stringify(foreign)}`;
  // The first step of a removal has an entry, and so has the last: one step may be both.
  const each = new Set(own.map(({ object, after }) => `${object} ${String(after?.["action"])}`));
  if (each.size < own.length) return "a change has two audit entries";
  const inUse = new Set(typesInUse(real));
  const changed =
    id === "stepRemoval"
      ? real.some((change) => change.key === "cell_state" || isMark(change))
      : real.some((change) => !isVersion(change) && !inUse.has(change));
  // A cell's abort has one only if the transfer was accepted.
  if (key !== "operator" && id === "abortTransfer" && own.length === 0) return undefined;
  const isMoved = moved.some(({ after }) => actions.includes(after?.["action"]));
  if (actions.length === 0 || (changed ? own.length > 0 || isMoved : own.length === 0)) return undefined;
  return changed ? "a change by an operator has no audit entry" : "an audit entry without a change";
}
