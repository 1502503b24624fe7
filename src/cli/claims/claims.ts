import {
  PermissionDeniedError,
  type Bucket,
  type Client,
  type ClaimRecord as Claim,
  type Source,
} from "../../users/client/index.ts";
import { usageError, CommandError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { showHolder } from "../lookup/show-holder.ts";
import { fields, type Column } from "../output/table.ts";
import { callRoute } from "../connection/call-route.ts";

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

export async function showClaim(
  context: Context,
  name: string,
  { type }: { type: Bucket["type"] },
): Promise<Result> {
  const client = await context.client();
  const found = await client.records.find({ type, value: name });
  if (found === undefined) throw new CommandError("no cell owns this name", exitCodes.notFound);
  const { record, cell } = found;
  const whole = "epoch" in record ? record : undefined;
  const lease = whole?.lease_uuid ?? null;
  const transfer = whole?.transfer_id ?? null;
  return {
    document: { claim: record, cell },
    text: () =>
      fields([
        ["name", record.bucket.value],
        ["type", record.bucket.type],
        ["cell", `${record.cell_id}, ${cell.address}`],
        ["status", record.status],
        ["lease", transfer === null ? lease : null],
        ["transfer", transfer],
        ["subject", whole && `${whole.subject.type} ${whole.subject.id}`],
        ...(whole?.scope === undefined ? [] : [["scope", whole.scope] as [string, string]]),
        ["source", whole && `${whole.source.type} ${whole.source.id}`],
        ["epoch", whole?.epoch],
        ["created", whole?.created_at],
        ["changed", whole?.updated_at],
      ]),
    nextSteps: [
      ...showHolder({ cell: record.cell_id, lease, transfer }),
      commandLine("lookup", "--trace", "--type", type, "--", name),
    ],
  };
}

interface Page {
  records: readonly Claim[];
  next_page_token: string;
}

/** Lists the claims of all cells that have a subject. The coordinator reads every claim to find them. */
export async function findClaims(
  context: Context,
  type: string,
  id: string,
  { limit }: LimitOption,
): Promise<Result> {
  const { items, isCut } = await take(search(context, type, id, limit), limit);
  const [first] = items;
  return listResult<Claim>({
    name: "claims",
    items,
    isCut,
    columns: claimColumns("SUBJECT"),
    empty: `No cell has a name of ${type} ${id}.`,
    nextSteps:
      first === undefined
        ? []
        : [commandLine("claims", "history", "--type", first.bucket.type, "--", first.bucket.value)],
  });
}

async function* search(context: Context, type: string, id: string, limit: number): AsyncGenerator<Claim> {
  let token = "";
  do {
    const query = new URLSearchParams({
      subject_type: type,
      subject_id: id,
      page_size: String(pageSizeFor(limit)),
      page_token: token,
    });
    const page = await callRoute<Page>(context, { method: "GET", path: `/v1/admin/records?${query}` });
    yield* page.records;
    token = page.next_page_token;
  } while (token !== "");
}

/** The columns of claims, without the one that is the same in all rows of a list. */
const claimColumns = (shared: "CELL" | "SUBJECT"): readonly Column<Claim>[] =>
  columns.filter(({ title }) => title !== shared);

const columns: readonly Column<Claim>[] = [
  { title: "TYPE", value: ({ bucket }) => bucket.type },
  { title: "NAME", value: ({ bucket }) => bucket.value },
  { title: "CELL", value: ({ cell_id: cell }) => cell },
  { title: "STATUS", value: ({ status }) => status },
  { title: "SUBJECT", value: ({ subject }) => `${subject.type} ${subject.id}` },
  { title: "SOURCE", value: ({ source }) => `${source.type} ${source.id}` },
  { title: "EPOCH", value: ({ epoch }) => epoch, isNumber: true },
];
