/** One row of a lookup. */
export interface FoundName {
  name: string;
  type: string | null;
  found: boolean;
  cell: string | null;
  address: string | null;
  epoch: number | null;
  status: string | null;
  lease: string | null;
  /** The id of the transfer that holds the name. `lease` is then its UUID. */
  transfer: string | null;
}
