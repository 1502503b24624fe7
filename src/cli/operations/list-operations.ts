import type { Operation } from "../../users/client/api-types.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { table } from "../output/table.ts";
import { readOperations } from "./call-operations.ts";

export async function listOperations(context: Context): Promise<Result> {
  const operations = await readOperations(context);
  return {
    document: { operations },
    text: (style) => (operations.length === 0 ? "No operation runs." : table(operations, COLUMNS, style)),
    notes: operations.map(({ id, how_to_end: howToEnd }) => `To end ${id}: ${howToEnd}.`),
  };
}

const COLUMNS = [
  { title: "ID", value: ({ id }: Operation) => id },
  { title: "KIND", value: ({ kind }: Operation) => kind },
  { title: "ABOUT", value: ({ about }: Operation) => about },
  { title: "STARTED", value: ({ started_at: startedAt }: Operation) => startedAt },
  { title: "BY", value: ({ started_by: startedBy }: Operation) => startedBy },
];
