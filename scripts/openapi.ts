/** Writes `openapi.json` from the contract. With `--check` it only compares the file with the contract. */
import { readFile, writeFile } from "node:fs/promises";
import { openApiOf } from "../src/http/openapi.ts";

const file = new URL("../openapi.json", import.meta.url);

async function main(): Promise<void> {
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const document = `${JSON.stringify(openApiOf(version), null, 2)}\n`;
  if (!process.argv.includes("--check")) return writeFile(file, document);
  const written = await readFile(file, "utf8").catch(() => "");
  // A formatter may have changed the file, so compare the content.
  if (written !== "" && JSON.stringify(JSON.parse(written)) === JSON.stringify(JSON.parse(document))) return;
  process.stderr.write(
    "openapi.json differs from the contract in src/http: " +
      "run `npm run generate:openapi` and commit the result.\n",
  );
  process.exitCode = 1;
}

await main();
