import { checkKeyId } from "../framework/arguments.ts";
import { CommandError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import type { Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { findKey } from "./find-key.ts";
import { mintedResult, wouldMint } from "./mint-key.ts";

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
