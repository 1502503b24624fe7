import { readFile, stat } from "node:fs/promises";
import { parseJson } from "../../coordinator/api/json.ts";
import { MAX_DOCUMENT_BYTES } from "../../users/router/rules/fields.ts";
import { messageOf, usageError } from "../framework/command-error.ts";

/** White space between the rules may be as large as the rules. */
const MAX_FILE_BYTES = 2 * MAX_DOCUMENT_BYTES;

/** The reader of the rules has limits of its own, and names the field that is over one. */
const BOUNDS = { depth: 64, values: MAX_FILE_BYTES, items: () => undefined };

/** @throws a usage error that names the file */
export async function readRules(file: string): Promise<unknown> {
  const text = await readText(file);
  try {
    // Its message says where the text is wrong.
    JSON.parse(text);
  } catch (error) {
    throw usageError(`${file} is not JSON: ${messageOf(error)}`);
  }
  // `JSON.parse` alone would drop all but the last of several fields with one name.
  const document = parseJson(text, BOUNDS);
  if (!document.ok) throw usageError(`${file}: ${document.refusal.detail}`);
  return document.value;
}

async function readText(file: string): Promise<string> {
  try {
    const { size } = await stat(file);
    if (size <= MAX_FILE_BYTES) return await readFile(file, "utf8");
  } catch (error) {
    throw usageError(`${file} cannot be read: ${messageOf(error)}`);
  }
  throw usageError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
}
