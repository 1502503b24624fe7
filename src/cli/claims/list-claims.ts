import type { Bucket, Client, ClaimRecord as Claim, Source } from "../../users/client/index.ts";
import { PermissionDeniedError } from "../../users/client/index.ts";
import { usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { claimColumns } from "./claim-columns.ts";

export interface RangeOptions {
  cell: string;
  type?: readonly Bucket["type"][];
}

interface ListOptions extends RangeOptions, LimitOption {
  source?: Source["type"];
}

export async function listClaims(context: Context, options: ListOptions): Promise<Result> {
  const { cell, limit } = options;
  const client = await context.client();
  const { items, isCut } = await take(claimsOf(client, options), limit);
  const source = options.source ?? items[0]?.source.type;
  return listResult<Claim>({
    name: "claims",
    items,
    isCut,
    columns: claimColumns("CELL"),
    empty: `Cell ${cell} has no such claims.`,
    nextSteps:
      isCut && source !== undefined
        ? [commandLine("claims", "export", "--cell", cell, "--source", source)]
        : [],
  });
}

async function* claimsOf(client: Client, options: ListOptions): AsyncGenerator<Claim> {
  const sources = options.source === undefined ? await sourceTypes(client) : [options.source];
  for (const sourceType of sources)
    yield* client
      .forCell(options.cell)
      .records.list({ sourceType, bucketTypes: options.type, pageSize: pageSizeFor(options.limit) });
}

async function sourceTypes(client: Client): Promise<Source["type"][]> {
  try {
    const { types } = await client.types.get();
    return Object.keys(types.source_types) as Source["type"][];
  } catch (error) {
    if (error instanceof PermissionDeniedError)
      throw usageError("--source is required: only operators and viewers may read the declared types");
    throw error;
  }
}
