/**
 * Writes `openapi.json` and `types.schema.json`, the schema of a set of types, from the contract. With
 * `--check` it only compares the files with the contract.
 */
import { readFile, writeFile } from "node:fs/promises";
import { typesSchema } from "../src/common/types/schema.ts";
import { openApiOf } from "../src/coordinator/api/openapi.ts";

async function write(name: string, content: unknown): Promise<void> {
  const file = new URL(`../${name}`, import.meta.url);
  const document = `${JSON.stringify(content, null, 2)}\n`;
  if (!process.argv.includes("--check")) return writeFile(file, document);
  const written = await readFile(file, "utf8").catch(() => "");
  // A formatter may have changed the file, so compare the content.
  if (written !== "" && JSON.stringify(JSON.parse(written)) === JSON.stringify(JSON.parse(document))) return;
  process.stderr.write(
    `${name} differs from the contract in src: run \`npm run generate:openapi\` and commit the result.\n`,
  );
  process.exitCode = 1;
}

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};
await write("openapi.json", openApiOf(version));
await write("types.schema.json", typesSchema);
