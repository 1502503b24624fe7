/** Values that mean something to the server, by the name of the field: few, so that requests meet what others have done. */

export const uuid = (n: number): string => `0f0f0f0f-0000-4000-8000-${String(n).padStart(12, "0")}`;

/** In every name that is made here, so that a name is known wherever it turns up. */
export const NAME_MARK = "fzname";

const spellings = (name: string): string[] => [name, name.toUpperCase(), name.replace("f", "ｆ")];
export const names = Array.from({ length: 10 }, (_, index) => `${NAME_MARK}-${index}`);

export const REGISTERED = ["1", "2", "3", "4"];
/** From these numbers on: a lease of each registered cell that is committed to begin with, and one that is granted. */
export const DECIDED = 0;
export const OUTSTANDING = 10;
/** Cells that nobody registers; there is a key for the first. */
export const UNREGISTERED = ["77", "9223372036854775807"];
/** Cells that are registered when the wind blows so. */
const SOMETIMES = ["5", "6", "7"];

export const pools: Readonly<Record<string, readonly string[]>> = {
  uuid: Array.from({ length: 24 }, (_, n) => (n % 5 === 4 ? uuid(n - 1).toUpperCase() : uuid(n))),
  value: [...names.flatMap(spellings), `${NAME_MARK}/a/b`, `${NAME_MARK}/é`, `${NAME_MARK}@x.example`],
  cell: [...REGISTERED, ...REGISTERED, ...SOMETIMES, ...UNREGISTERED],
  cell_id: [...REGISTERED, ...SOMETIMES, ...SOMETIMES, ...UNREGISTERED],
  id: ["1", "2", "10", "007", "fz-id"],
  source_id_gt: ["1", "2", "fz-id"],
  source_id_lte: ["10", "fz-id"],
  page_size: ["1", "2", "100", "1001", "0001"],
  page_token: [""],
  address: ["https://cell.example", "http://127.0.0.1:9001/base"],
  reason: ["the cell is gone"],
};
