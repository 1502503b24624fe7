import type { ClaimRecord as Claim } from "../../users/client/index.ts";
import type { Column } from "../output/table.ts";

/** The columns of claims, without the one that is the same in all rows of a list. */
export const claimColumns = (shared: "CELL" | "SUBJECT"): readonly Column<Claim>[] =>
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
