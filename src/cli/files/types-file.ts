/** Declares the types of a file at a deployment. */
import type { Client, TypesPlan } from "../../users/client/index.ts";
import { typesOf, type TypesDocument } from "../../common/types/document.ts";
import { readJsonFile } from "./json-file.ts";

/** @throws an error that names the file, and the entry that is wrong */
export async function readTypesFile(file: string): Promise<TypesDocument> {
  const document = await readJsonFile(file);
  const read = typesOf(document);
  if (!read.ok) throw new Error(`${file}: ${read.refusal.detail}`);
  return document as TypesDocument;
}

/**
 * Plans or applies a set of types. The lines say what changes; the deployment refuses a set as a whole.
 *
 * @throws the client's error if the set is refused, or if somebody else has changed the types meanwhile
 */
export async function declareTypes(
  client: Pick<Client, "types">,
  { bucket_types, subject_types, source_types }: TypesDocument,
  isDryRun: boolean,
): Promise<{ lines: string[]; isRefused: boolean }> {
  const types = { bucket_types, subject_types, source_types };
  const { version } = await client.types.get();
  const plan = await client.types.change({ version, types, dry_run: true });
  const isRefused = plan.refusals.length > 0;
  const lines = linesOf(plan);
  if (isDryRun || plan.changes.length === 0) return { lines, isRefused };
  if (isRefused) return { lines: [...lines, "Nothing was changed."], isRefused };
  await client.types.change({ version: plan.version, types });
  return { lines: [...lines, "The types are declared."], isRefused };
}

/** What a plan changes and refuses, one line for each. */
export function linesOf({ changes, refusals }: TypesPlan): string[] {
  if (changes.length === 0) return ["The deployment has these types already."];
  return [
    ...changes.map(({ entry, change, before, after }) => {
      const [old, wanted] = [before, after].map((each) => JSON.stringify(each));
      if (change === "add") return `+ ${entry} ${wanted}`;
      return change === "remove" ? `- ${entry} ${old}` : `~ ${entry} ${old} -> ${wanted}`;
    }),
    ...refusals.map(({ entry, reason }) => `Refused: ${entry} ${reason}.`),
  ];
}
