import type { ClaimRecord as Claim } from "../../users/client/index.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { callRoute } from "../connection/call-route.ts";
import type { Context } from "../framework/context.ts";
import { listResult, take, type Result } from "../output/result.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { claimColumns } from "./claim-columns.ts";

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
