import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { exitCodes, usageError, CommandError } from "../framework/command-error.ts";
import { checkKeyId, type LimitOption } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { credentialsOf, readUses, type Credential } from "./credentials.ts";
import type { MintedKey, NewKey, Key, Client } from "../../users/client/index.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";

interface ListOptions extends LimitOption {
  kind?: Credential["kind"];
  role?: Credential["role"];
  cell?: string;
  expiresIn?: number;
}

const USES_UNKNOWN =
  "The certificates and tokens that were used, and the last uses of keys, can't be read now. " +
  "Try again later.";

export async function listKeys(context: Context, options: ListOptions): Promise<Result> {
  const nowMs = context.io.now();
  const client = await context.client();
  const uses = await readUses(client);
  const { items, isCut } = await take(
    select(credentialsOf(client, uses, nowMs), options, nowMs),
    options.limit,
  );
  const ending = options.expiresIn === undefined ? undefined : items.find(canRotate)?.id;
  return listResult<Credential>({
    name: "credentials",
    items,
    isCut,
    columns: [
      { title: "KIND", value: ({ kind }) => kind },
      { title: "ID", value: ({ id }) => id },
      { title: "ROLE", value: ({ role }) => role },
      { title: "CELL", value: ({ cell_id: cell }) => cell },
      { title: "STATE", value: ({ state }) => state },
      { title: "EXPIRES IN", value: (credential) => restOf(credential, nowMs), isNumber: true },
      {
        title: "LAST USED",
        value: ({ last_used_at: at }) => at?.slice(0, "2026-11-27T10:00".length) ?? null,
      },
      { title: "ISSUED BY", value: ({ issued_by: by }) => by },
      { title: "NAME", value: ({ name }) => name },
    ],
    empty: "There are no such keys, certificates or tokens.",
    nextSteps: ending == null ? [] : [commandLine("keys", "rotate", ending)],
    ...(uses === undefined ? { notes: [USES_UNKNOWN], exitCode: exitCodes.unavailable } : {}),
  });
}

/** Of a key that was made offline, only its uses are known. */
const canRotate = ({ kind, state, created_at: madeAt }: Credential): boolean =>
  kind === "key" && state === "VALID" && madeAt !== null;

async function* select(
  credentials: AsyncIterable<Credential>,
  { kind, role, cell, expiresIn }: ListOptions,
  nowMs: number,
): AsyncGenerator<Credential> {
  for await (const credential of credentials) {
    if (kind !== undefined && credential.kind !== kind) continue;
    if (role !== undefined && credential.role !== role) continue;
    if (cell !== undefined && credential.cell_id !== cell) continue;
    const { expires_at: expiresAt } = credential;
    if (expiresIn !== undefined && (expiresAt === null || Date.parse(expiresAt) > nowMs + expiresIn * 1_000))
      continue;
    yield credential;
  }
}

const restOf = ({ state, expires_at: at }: Credential, nowMs: number): string | null =>
  at === null || state === "REVOKED" || state === "EXPIRED" ? null : durationText(Date.parse(at) - nowMs);

interface MintOptions {
  role: NewKey["role"];
  cell?: string;
  expiresIn?: number;
  note?: string;
  reason?: string;
  dryRun?: boolean;
}

export async function mintKey(context: Context, options: MintOptions): Promise<Result> {
  const { role, cell, expiresIn, note, reason, dryRun } = options;
  if (role === "cell" && cell === undefined)
    throw usageError("--cell is required for a key of the role cell");
  if (role !== "cell" && cell !== undefined) throw usageError("--cell is only for keys of the role cell");
  const wanted = { role, cell_id: cell, expires_in_s: expiresIn, note, reason };
  if (dryRun === true) return wouldMint(wanted);
  return mintedResult(await (await context.client()).keys.mint(wanted), []);
}

const wouldMint = (key: NewKey): Result => ({
  document: { key: null, wanted: key, changed: false, dry_run: true },
  text: () => "",
  notes: [
    `Would make a key of the role ${key.role}${key.cell_id === undefined ? "" : ` for cell ${key.cell_id}`}` +
      `${key.expires_in_s === undefined ? "" : `, valid for ${durationText(key.expires_in_s * 1_000)}`}.`,
    "Nothing was changed.",
  ],
});

/** Standard output has the key alone, so that it can be piped. */
function mintedResult(minted: MintedKey, nextSteps: readonly string[]): Result {
  const undo = `${commandLine("keys", "revoke", minted.id)} --reason TEXT`;
  return {
    document: { ...minted, changed: true, dry_run: false, undo },
    text: () => minted.key,
    notes: [
      `Key ${minted.id} is valid until ${minted.expires_at}. It is shown only this once.`,
      `To undo it: ${undo}`,
    ],
    nextSteps,
  };
}

/** The old key stays valid until everybody uses the new one. */
export async function rotateKey(
  context: Context,
  id: string,
  options: { dryRun?: boolean; reason?: string; expiresIn?: number },
): Promise<Result> {
  checkKeyId(id, "ID");
  const client = await context.client();
  const old = await findKey(client, id);
  if (old === undefined)
    throw new CommandError(`there is no key with the id ${JSON.stringify(id)}`, exitCodes.notFound, [
      "leasehold keys ls",
    ]);
  const oldLifetimeS = Math.round((Date.parse(old.expires_at) - Date.parse(old.created_at)) / 1_000);
  const wanted = {
    role: old.role,
    cell_id: old.cell_id ?? undefined,
    expires_in_s: options.expiresIn ?? Math.max(1, oldLifetimeS),
    note: old.note ?? undefined,
    reason: options.reason ?? `replaces ${id}`,
  };
  if (options.dryRun === true) return wouldMint(wanted);
  return mintedResult(await client.keys.mint(wanted), [
    `${commandLine("keys", "revoke", id)} --reason "replaced"`,
  ]);
}

interface RevokeOptions extends ChangeOptions {
  cell?: string;
}

/** What a person types to confirm. Ids of keys begin with a time, so their ends differ most. */
const TYPED_CHARS = 8;

/** The keys of people. They are not replaced by somebody else. */
const PERSONAL: ReadonlySet<string> = new Set(["operator", "viewer"]);

export async function revokeKey(context: Context, id: string, options: RevokeOptions): Promise<Result> {
  checkKeyId(id, "ID");
  const reason = reasonOf(options);
  const client = await context.client();
  const before = await findKey(client, id);
  // The cell of a key that was made offline is what a caller said, so another one is told to the coordinator.
  const isSameCell = options.cell === undefined || options.cell === before?.cell_id;
  if (before !== undefined && before.revoked_at !== null && isSameCell)
    return {
      document: { key: before, changed: false, dry_run: options.dryRun === true },
      text: () => `Key ${id} was revoked already. Nothing was changed.`,
    };
  const { key: own } = await context.target();
  const isOwn = keyFactsOf(own)?.id === id;
  const holder = before === undefined ? "It is not listed: check the id." : `It is ${describe(before)}.`;
  const effect = `${holder}${isOwn ? " It is the key that you are using." : ""}`;
  const propagation = propagationOf(options.cell ?? before?.cell_id ?? undefined);
  if (options.dryRun === true)
    return {
      document: { key: before ?? null, own: isOwn, changed: false, dry_run: true },
      text: () => `Would revoke key ${id}. ${effect}`,
      notes: ["Nothing was changed."],
    };
  await confirm(context, options, {
    name: id.slice(-TYPED_CHARS),
    effect: `This revokes key ${id}, because: ${reason}\n${effect} ${propagation}`,
  });
  const key = await client.keys.revoke(id, { cell_id: options.cell, reason });
  return {
    document: { key, changed: true, dry_run: false, undo: null },
    text: () => `Revoked key ${id}. ${effect}`,
    notes: [propagation],
    nextSteps: before === undefined ? [] : await replacement(context, before),
  };
}

const describe = ({ role, cell_id: cell, note }: Key): string =>
  `a key of ${cell === null ? `the role ${role}` : `cell ${cell}`}` +
  (note === null ? "" : ` (${escapeControls(note)})`);

const propagationOf = (cell: string | undefined): string =>
  cell === undefined
    ? "It is refused within 30 seconds. There is no undo."
    : `The leases of cell ${cell} refuse it at once, and everything else within 30 seconds. ` +
      "There is no undo.";

/** The command that makes another key, if this was the last one of a service. */
async function replacement(context: Context, { id, role, cell_id: cell }: Key): Promise<string[]> {
  if (PERSONAL.has(role)) return [];
  const nowMs = context.io.now();
  for await (const key of (await context.client()).keys.list()) {
    const isOfSame = key.id !== id && key.role === role && key.cell_id === cell;
    if (isOfSame && key.revoked_at === null && Date.parse(key.expires_at) > nowMs) return [];
  }
  return [commandLine("keys", "mint", "--role", role, ...(cell === null ? [] : ["--cell", cell]))];
}

/** Undefined: the key is not listed, as keys that were made offline. */
async function findKey(client: Client, id: string): Promise<Key | undefined> {
  for await (const key of client.keys.list()) if (key.id === id) return key;
  return undefined;
}
