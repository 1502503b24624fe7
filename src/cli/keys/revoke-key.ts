import type { Key } from "../../users/client/index.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { checkKeyId } from "../framework/arguments.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { escapeControls } from "../../common/text/escape.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { findKey } from "./find-key.ts";

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
