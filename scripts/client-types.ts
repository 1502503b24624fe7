/**
 * Writes `src/users/client/api-types.ts`, the client's types and routes, from the contract. With `--check`,
 * only checks that the file is up to date.
 */
import { readFile, writeFile } from "node:fs/promises";
import { format, type FormatConfig } from "oxfmt";
import { clientTypesOf } from "../src/coordinator/api/client-types.ts";

const file = new URL("../src/users/client/api-types.ts", import.meta.url);
const formatFile = new URL("../.oxfmtrc.json", import.meta.url);

async function main(): Promise<void> {
  const options = JSON.parse(await readFile(formatFile, "utf8")) as FormatConfig;
  const { code: made, errors } = await format("api-types.ts", clientTypesOf(), options);
  if (errors.length > 0) throw new SyntaxError(errors.map(({ message }) => message).join("\n"));
  if (!process.argv.includes("--check")) return writeFile(file, made);
  if ((await readFile(file, "utf8").catch(() => "")) === made) return;
  process.stderr.write(
    "src/users/client/api-types.ts differs from the contract: run `npm run generate:client`.\n",
  );
  process.exitCode = 1;
}

await main();
