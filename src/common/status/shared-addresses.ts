import { grouped } from "./grouped.ts";

/**
 * The cells that have the address of another cell, in one list per address. Routers send the requests of
 * these cells to the same place, so at most one of them gets its own.
 */
export const sharedAddressesOf = <Cell extends { address: string }>(cells: readonly Cell[]): Cell[][] =>
  [...grouped(cells, ({ address }) => comparable(address)).values()].filter(({ length }) => length > 1);

/** A final slash makes no other address, and neither does the case of a host. */
const comparable = (address: string): string => (URL.canParse(address) ? new URL(address).href : address);
