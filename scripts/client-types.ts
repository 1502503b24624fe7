/**
 * Writes `src/client/api-types.ts`, the client's types and routes, from the contract. With `--check`, only
 * checks that the file is up to date.
 */
import { readFile, writeFile } from "node:fs/promises";
import { clientTypesOf } from "../src/http/client-types.ts";

const file = new URL("../src/client/api-types.ts", import.meta.url);

async function main(): Promise<void> {
  const made = clientTypesOf();
  if (!process.argv.includes("--check")) return writeFile(file, made);
  if ((await readFile(file, "utf8").catch(() => "")) === made) return;
  process.stderr.write(
    "src/client/api-types.ts differs from the contract in src/http: run `npm run generate:client`.\n",
  );
  process.exitCode = 1;
}

await main();
