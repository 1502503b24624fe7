/** Declares the types of a file at a deployment. */
import type { Client, TypesPlan } from "../../users/client/index.ts";
import { typesOf, type TypesDocument } from "../../common/types/document.ts";
import { readFile } from "node:fs/promises";
import { parseJson } from "../../coordinator/api/json.ts";

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

/** Larger than any valid document. */
const MAX_BYTES = 1_000_000;

/** More than any valid document has. Its reader refuses one entry too many, and names the list. */
const BOUNDS = { depth: 64, values: MAX_BYTES, items: () => undefined };

/** @throws an error that names the file, and where its text is wrong */
export async function readJsonFile(file: string): Promise<unknown> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${file} cannot be read: ${why}`, { cause: error });
  });
  if (text.length > MAX_BYTES) throw new Error(`${file} is larger than ${MAX_BYTES} bytes`);
  try {
    // Its message says where the text is wrong.
    JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${file} is not JSON: ${why}`, { cause: error });
  }
  // `JSON.parse` alone would drop all but the last of several fields with one name.
  const document = parseJson(text, BOUNDS);
  if (!document.ok) throw new Error(`${file}: ${document.refusal.detail}`);
  return document.value;
}
