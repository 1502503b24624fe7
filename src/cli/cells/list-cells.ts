import type { Cell } from "../../users/client/index.ts";
import type { Context } from "../framework/context.ts";
import { pageSizeFor, type LimitOption } from "../framework/arguments.ts";
import { listResult, take, type Result } from "../output/result.ts";

interface ListOptions extends LimitOption {
  removed?: boolean;
}

export async function listCells(context: Context, { limit, removed }: ListOptions): Promise<Result> {
  const client = await context.client();
  const { items, isCut } = await take(
    client.cells.list({ pageSize: pageSizeFor(limit), includeRemoved: removed }),
    limit,
  );
  return listResult<Cell>({
    name: "cells",
    items,
    isCut,
    columns: [
      { title: "CELL", value: ({ cell_id: id }) => id },
      { title: "NAME", value: ({ name }) => name },
      { title: "STATE", value: ({ state }) => state ?? "UNREACHABLE" },
      { title: "ADDRESS", value: ({ address }) => address },
      { title: "OPEN LEASES", value: ({ outstanding_leases: count }) => count, isNumber: true },
      { title: "UNAPPLIED", value: ({ unapplied_decisions: count }) => count, isNumber: true },
      { title: "BYTES", value: ({ stored_bytes: bytes }) => bytes, isNumber: true },
    ],
    empty: "There are no cells.",
    nextSteps: items.length === 0 ? ["leasehold cells add --help"] : [],
  });
}
