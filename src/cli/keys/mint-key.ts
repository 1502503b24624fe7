import type { MintedKey, NewKey } from "../../users/client/index.ts";
import { usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { durationText } from "../../common/text/duration.ts";
import { commandLine } from "../../common/text/shell-word.ts";

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

export const wouldMint = (key: NewKey): Result => ({
  document: { key: null, wanted: key, changed: false, dry_run: true },
  text: () => "",
  notes: [
    `Would make a key of the role ${key.role}${key.cell_id === undefined ? "" : ` for cell ${key.cell_id}`}` +
      `${key.expires_in_s === undefined ? "" : `, valid for ${durationText(key.expires_in_s * 1_000)}`}.`,
    "Nothing was changed.",
  ],
});

/** Standard output has the key alone, so that it can be piped. */
export function mintedResult(minted: MintedKey, nextSteps: readonly string[]): Result {
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
