import { readFile, stat } from "node:fs/promises";
import type { CellName, Keys } from "../../users/conformance/api.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { checkKey, findTarget, findUrl } from "../connection/target.ts";
import { messageOf, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";

export interface KeyOptions {
  key?: string;
  otherKey?: string;
  routerKey?: string;
  operatorKey?: string;
  cell?: string;
  otherCell?: string;
}

/** The deployment, the keys for it, and the cells that they are of. */
export interface Tested {
  url: string;
  keys: Keys;
  cell: string;
  otherCell: string | undefined;
}

/** @throws a usage error that says what is missing */
export async function readTested(context: Context, options: KeyOptions): Promise<Tested> {
  const { io } = context;
  const given = await readKey(context, "--key", options.key);
  const { url, key } =
    given === undefined
      ? await findTarget(io, context.options)
      : { url: await findUrl(io, context.options), key: given };
  const read = (flag: string, file: string | undefined, variable: string): Promise<string | undefined> =>
    readKey(context, flag, file, io.env[variable]);
  const other = await read("--other-key", options.otherKey, "LEASEHOLD_OTHER_KEY");
  const router = await read("--router-key", options.routerKey, "LEASEHOLD_ROUTER_KEY");
  const operator = await read("--operator-key", options.operatorKey, "LEASEHOLD_OPERATOR_KEY");
  const cell = cellOf("cell", key, options.cell);
  const otherCell = other === undefined ? undefined : cellOf("other", other, options.otherCell);
  if (cell === otherCell) throw usageError("--other-key must be the key of another cell than --key");
  const keys: Keys = {
    cell: key,
    ...(other === undefined ? {} : { other }),
    ...(router === undefined ? {} : { router }),
    ...(operator === undefined ? {} : { operator }),
  };
  return { url, keys, cell, otherCell };
}

const flags: Readonly<Record<CellName, { key: string; cell: string }>> = {
  cell: { key: "--key", cell: "--cell" },
  other: { key: "--other-key", cell: "--other-cell" },
};

function cellOf(name: CellName, key: string, given: string | undefined): string {
  const facts = keyFactsOf(key);
  const flag = flags[name];
  if (facts !== undefined && facts.cell === null)
    throw usageError(`${flag.key} must be the key of a cell; this is one of the role ${facts.role}`);
  const cell = facts?.cell ?? given;
  if (cell === undefined) throw usageError(`${flag.cell} is required, because the key does not say its cell`);
  if (given !== undefined && given !== cell)
    throw usageError(`this is a key of cell ${cell}, so leave out ${flag.cell}`);
  return cell;
}

/** Longer than any key or token. */
const MAX_BYTES = 16_384;

/** Reads the file of a flag. If there is none, takes the value of the variable. */
async function readKey(
  { io }: Context,
  flag: string,
  file: string | undefined,
  variable?: string,
): Promise<string | undefined> {
  if (file === undefined) return variable === undefined || variable === "" ? undefined : checkKey(variable);
  if (file.startsWith("lhk_")) {
    await io.err.write(
      `${flag} has the key itself, which other users of this machine can read. Give a file.\n`,
    );
    return checkKey(file);
  }
  try {
    if ((await stat(file)).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
    return checkKey(await readFile(file, "utf8"));
  } catch (error) {
    throw usageError(`${flag} must be a file with a key: ${messageOf(error)}`);
  }
}
