import type { Context } from "../framework/context.ts";
import { toJson, escapeControls } from "../../common/text/escape.ts";
import type { Result } from "../output/result.ts";
import { linesOf, readTypesFile } from "../files/types-file.ts";
import type { Client, TypesPlan } from "../../users/client/index.ts";
import { messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";

export async function showTypes(context: Context): Promise<Result> {
  const { version, types, in_use: inUse } = await (await context.client()).types.get();
  const names = Object.entries(inUse).flatMap(([list, some]) => some.map((name) => `${list}.${name}`));
  return {
    document: { version, types, in_use: inUse },
    text: () => toJson(types, 2),
    notes: [`In use, so unchangeable: ${names.join(", ") || "none"}.`],
  };
}

interface FileOption {
  file: string;
}

export async function planTypes(context: Context, { file }: FileOption): Promise<Result> {
  const { plan } = await planOf(await context.client(), file);
  const { changes, refusals } = plan;
  const isRefused = refusals.length > 0;
  return {
    document: { changes, refusals, dry_run: true },
    lines: changes,
    text: () => textOf(plan),
    nextSteps:
      changes.length > 0 && !isRefused
        ? [`${commandLine("types", "apply", "--file", file)} --reason TEXT`]
        : [],
    exitCode: isRefused ? exitCodes.conflict : changes.length > 0 ? exitCodes.drift : exitCodes.ok,
  };
}

export async function applyTypes(context: Context, options: FileOption & ChangeOptions): Promise<Result> {
  const reason = reasonOf(options);
  const client = await context.client();
  const { plan, wanted } = await planOf(client, options.file);
  const { changes, refusals, types: after, version } = plan;
  const unchanged = { changes, refusals, changed: false, dry_run: options.dryRun === true };
  if (changes.length === 0 || refusals.length > 0 || options.dryRun === true)
    return {
      document: unchanged,
      text: () => textOf(plan),
      notes: ["Nothing was changed."],
      exitCode: refusals.length > 0 ? exitCodes.conflict : exitCodes.ok,
    };
  const { types: before } = await client.types.get();
  await confirm(context, options, { name: "types", effect: `${textOf(plan)}\nBecause: ${reason}` });
  // The version makes this fail if somebody else has changed the types since the plan.
  const done = await client.types.change({ version, types: wanted, reason });
  return {
    document: { changes, changed: true, dry_run: false, version: done.version, before, after },
    text: () => `${textOf(plan)}\nThe types are declared.`,
    notes: [UNDO],
    nextSteps: ["leasehold types show"],
  };
}

const UNDO = "To undo it while no claim has a new type: apply the file as it was before.";

async function planOf(client: Client, file: string) {
  const document = await readTypesFile(file).catch((error: unknown) => {
    throw usageError(messageOf(error));
  });
  const { bucket_types, subject_types, source_types } = document;
  const wanted = { bucket_types, subject_types, source_types };
  const { version } = await client.types.get();
  return { plan: await client.types.change({ version, types: wanted, dry_run: true }), wanted };
}

const textOf = (plan: TypesPlan): string => linesOf(plan).map(escapeControls).join("\n");
