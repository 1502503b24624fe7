import type { Bucket, Client } from "../../users/client/index.ts";
import { InvalidArgumentError, PermissionDeniedError } from "../../users/client/index.ts";
import { usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { listResult, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { showHolder, type FoundName } from "./show-holder.ts";
import { traceNames } from "./trace-names.ts";

interface LookupOptions {
  type?: string;
  trace?: boolean;
}

const MAX_NAMES = 1_000;

export async function lookup(context: Context, names: string[], options: LookupOptions): Promise<Result> {
  if (names.length > MAX_NAMES) throw usageError(`give at most ${MAX_NAMES} names`);
  const client = await context.client();
  const types = options.type === undefined ? await declaredTypes(client) : [options.type];
  const found = await findAll(client, names, types, options.type !== undefined);
  if (options.trace === true) return traceNames(client, found);
  const isMissing = found.some((each) => !each.found);
  return listResult({
    name: "names",
    items: found,
    isCut: false,
    columns: [
      { title: "NAME", value: ({ name }) => name },
      { title: "TYPE", value: ({ type }) => type },
      { title: "CELL", value: ({ cell }) => cell ?? "none" },
      { title: "ADDRESS", value: ({ address }) => address },
      { title: "STATUS", value: ({ status }) => status },
      { title: "EPOCH", value: ({ epoch }) => epoch, isNumber: true },
      { title: "LEASE", value: ({ lease }) => lease },
    ],
    empty: "",
    nextSteps: nextStepsOf(found),
    exitCode: isMissing ? exitCodes.notFound : exitCodes.ok,
  });
}

async function declaredTypes(client: Client): Promise<string[]> {
  try {
    const { types } = await client.types.get();
    return Object.keys(types.bucket_types);
  } catch (error) {
    if (error instanceof PermissionDeniedError)
      throw usageError("--type is required: only operators and viewers may read the declared types");
    throw error;
  }
}

/** With one type, there is a row for each name. With all types, only what was found, or one row. */
async function findAll(
  client: Client,
  names: readonly string[],
  types: readonly string[],
  isStrict: boolean,
): Promise<FoundName[]> {
  const rows: FoundName[] = [];
  for (const type of types) rows.push(...(await findInType(client, names, type, isStrict)));
  return names.flatMap((name) => {
    const own = rows.filter((row) => row.name === name);
    const found = own.filter((row) => row.found);
    return found.length > 0 ? found : [own.length === 1 && own[0] ? own[0] : noRow(name, null)];
  });
}

async function findInType(
  client: Client,
  names: readonly string[],
  type: string,
  isStrict: boolean,
): Promise<FoundName[]> {
  const bucketsOf = (some: readonly string[]): Bucket[] =>
    some.map((value) => ({ type: type as Bucket["type"], value }));
  try {
    const results = await client.records.lookup(bucketsOf(names));
    return results.map((result, at) => rowOf(names[at] ?? result.bucket.value, type, result));
  } catch (error) {
    // In a search through all types, a name that a type cannot have is not in this type.
    if (isStrict || !(error instanceof InvalidArgumentError)) throw error;
    if (names.length <= 1) return [];
    const each: FoundName[] = [];
    for (const name of names) each.push(...(await findInType(client, [name], type, false)));
    return each;
  }
}

type LookupResult = Awaited<ReturnType<Client["records"]["lookup"]>>[number];

function rowOf(name: string, type: string, { found, record, cell }: LookupResult): FoundName {
  if (!found || record === undefined) return noRow(name, type);
  const isWhole = "epoch" in record;
  return {
    name,
    type,
    found,
    cell: record.cell_id,
    address: cell?.address ?? null,
    epoch: isWhole ? record.epoch : null,
    status: record.status,
    lease: isWhole ? record.lease_uuid : null,
    transfer: isWhole ? (record.transfer_id ?? null) : null,
  };
}

const noRow = (name: string, type: string | null): FoundName => ({
  name,
  type,
  found: false,
  cell: null,
  address: null,
  epoch: null,
  status: null,
  lease: null,
  transfer: null,
});

function nextStepsOf(rows: readonly FoundName[]): string[] {
  const held = rows.find(({ lease }) => lease !== null);
  const first = rows.find(({ found }) => found);
  return [
    ...(held === undefined ? [] : showHolder(held)),
    ...(first === undefined || first.type === null
      ? []
      : [commandLine("lookup", "--trace", "--type", first.type, "--", first.name)]),
  ];
}
