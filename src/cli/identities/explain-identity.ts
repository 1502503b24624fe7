import { readFile } from "node:fs/promises";
import type { IdentityQuestion } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { messageOf, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { fields } from "../output/table.ts";
import { hasPrivateKey } from "./has-private-key.ts";

interface ExplainOptions {
  certificate?: string;
  issuer?: string;
  subject?: string;
}

export async function explainIdentity(context: Context, options: ExplainOptions): Promise<Result> {
  const question = await questionOf(options);
  const explained = await (await context.client()).identities.explain(question);
  const { id, role, cell_id: cell, expires_at: expires, refusal } = explained;
  return {
    document: { ...explained },
    text: () =>
      fields([
        ["id", id],
        ["role", role ?? undefined],
        ["cell", cell ?? undefined],
        ["expires", expires ?? undefined],
        ["refused", refusal ?? undefined],
      ]),
    nextSteps:
      refusal === null
        ? [`${commandLine("keys", "revoke", id, ...(cell === null ? [] : ["--cell", cell]))} --reason TEXT`]
        : [],
  };
}

async function questionOf({ certificate, issuer, subject }: ExplainOptions): Promise<IdentityQuestion> {
  if ((certificate === undefined) === (issuer === undefined))
    throw usageError("give either --certificate, or --issuer and --subject");
  if ((issuer === undefined) !== (subject === undefined)) throw usageError("--issuer needs --subject");
  if (certificate === undefined) return { issuer, subject };
  const pem = await readFile(certificate, "utf8").catch((error: unknown) => {
    throw usageError(`${certificate} cannot be read: ${messageOf(error)}`);
  });
  if (hasPrivateKey(pem))
    throw usageError(`${certificate} has a private key; give a file with the certificate alone`);
  return { certificate: pem };
}
