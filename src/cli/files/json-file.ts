/** Reads a file of JSON that somebody has written by hand. */
import { readFile } from "node:fs/promises";
import { parseJson } from "../../coordinator/api/json.ts";

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
