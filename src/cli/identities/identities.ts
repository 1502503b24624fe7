import type { Context } from "../framework/context.ts";
import { toJson, escapeControls } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readJsonFile } from "../files/types-file.ts";
import type { Client, IdentitiesPlan } from "../../users/client/index.ts";
import type { IdentitiesChange, IdentityQuestion } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { fields } from "../output/table.ts";

export async function showIdentities(context: Context): Promise<Result> {
  const shown = await (await context.client()).identities.get();
  const { issuers, authorities, authority_expiries: expiries } = shown;
  return {
    document: { ...shown },
    text: () => toJson({ issuers, authorities }, 2),
    notes: expiries.map(
      ({ name, expires_at: at }) => `The certificate of the authority ${name} expires at ${at}.`,
    ),
  };
}

interface FileOption {
  file: string;
}

export async function planIdentities(context: Context, { file }: FileOption): Promise<Result> {
  const { plan } = await planOf(await context.client(), file);
  const { changes } = plan;
  return {
    document: { changes, dry_run: true },
    lines: changes,
    text: () => textOf(plan),
    nextSteps:
      changes.length > 0 ? [`${commandLine("identities", "apply", "--file", file)} --reason TEXT`] : [],
    exitCode: changes.length > 0 ? exitCodes.drift : exitCodes.ok,
  };
}

export async function applyIdentities(
  context: Context,
  options: FileOption & ChangeOptions,
): Promise<Result> {
  const reason = reasonOf(options);
  const client = await context.client();
  const { plan, wanted } = await planOf(client, options.file);
  const { changes, version } = plan;
  if (changes.length === 0 || options.dryRun === true)
    return {
      document: { changes, changed: false, dry_run: options.dryRun === true },
      text: () => textOf(plan),
      notes: ["Nothing was changed."],
    };
  const { issuers, authorities } = plan;
  await confirm(context, options, { name: "identities", effect: `${textOf(plan)}\nBecause: ${reason}` });
  // The version makes this fail if somebody else has changed the identities since the plan.
  const done = await client.identities.change({ ...wanted, version, reason });
  return {
    document: {
      changes,
      changed: true,
      dry_run: false,
      version: done.version,
      before: { issuers, authorities },
      after: { issuers: done.issuers, authorities: done.authorities },
    },
    text: () => `${textOf(plan)}\nThe identities are changed. Every machine has them within 30 seconds.`,
    notes: ["To undo it: apply the file as it was before."],
    nextSteps: ["leasehold identities show"],
  };
}

type Wanted = Pick<IdentitiesChange, "issuers" | "authorities">;

async function planOf(client: Client, file: string): Promise<{ plan: IdentitiesPlan; wanted: Wanted }> {
  const wanted = await readIdentities(file).catch((error: unknown) => {
    throw usageError(messageOf(error));
  });
  const { version } = await client.identities.get();
  return { plan: await client.identities.change({ ...wanted, version, dry_run: true }), wanted };
}

/**
 * Reads a file of identities. An authority may have `certificate_file` instead of `certificate`, a path that
 * begins at the folder of the file. The deployment checks everything else, and names the field that is wrong.
 */
async function readIdentities(file: string): Promise<Wanted> {
  const document = await readJsonFile(file);
  const { issuers = [], authorities = [], ...others } = isObject(document) ? document : { document };
  const [other] = Object.keys(others);
  if (other !== undefined || !Array.isArray(issuers) || !Array.isArray(authorities))
    throw new Error(`${file} must be an object with the lists \`issuers\` and \`authorities\``);
  const read = authorities.map(async (authority: unknown) => {
    if (!isObject(authority)) return authority;
    const { certificate: given } = authority;
    if (typeof given === "string" && hasPrivateKey(given))
      throw new Error(`${file}: \`certificate\` has a private key; ${ALONE}`);
    if (typeof authority["certificate_file"] !== "string") return authority;
    const { certificate_file: path, ...rest } = authority;
    const certificate = await readFile(resolve(dirname(file), path), "utf8").catch((error: unknown) => {
      throw new Error(`${file}: \`certificate_file\` cannot be read: ${messageOf(error)}`, { cause: error });
    });
    if (hasPrivateKey(certificate))
      throw new Error(`${file}: \`certificate_file\` names ${path}, which has a private key; ${ALONE}`);
    return { ...rest, certificate };
  });
  return { issuers, authorities: await Promise.all(read) } as Wanted;
}

const ALONE = "give the certificate alone";

const isObject = (
  value: unknown,
): value is Record<string, unknown> & { certificate?: unknown; certificate_file?: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const SIGNS = { add: "+", remove: "-", change: "~" } as const;

const textOf = ({ changes }: IdentitiesPlan): string =>
  changes.length === 0
    ? "The deployment has these identities already."
    : changes.map(({ entry, change }) => escapeControls(`${SIGNS[change]} ${entry}`)).join("\n");

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

/** Whether a PEM has a private key. The deployment refuses one, too, but must not receive it. */
const hasPrivateKey = (pem: string): boolean => pem.includes("PRIVATE KEY");
