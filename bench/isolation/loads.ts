import type { Program } from "../peers.ts";

export type Server = Extract<Program, "leasehold" | "standalone">;
export const servers = ["leasehold", "standalone"] as const satisfies readonly Server[];

/**
 * What the other callers do, always as fast as they are answered:
 *
 * - `readers`: four readers of a cell with many claims, two of which list with a filter that matches nothing,
 *   and two of which ask for a digest of everything
 * - `batches`: a cell begins 100 batches of 1,000 claims at a time, and rolls them back
 * - `long-lookups`: a router has 32 lookups of 100 names of 900 bytes at a time
 * - `lookups`: the same with short names
 * - `single-lookups`: a router has 32 lookups of one name at a time
 * - `documents`: 32 callers without a key read `openapi.json`
 * - `pipelines`: ten connections without a key send 64 KiB of requests for it at once, and read nothing
 */
export const loads = [
  "readers",
  "batches",
  "long-lookups",
  "lookups",
  "single-lookups",
  "documents",
  "pipelines",
] as const;
export type Load = (typeof loads)[number];

/** Only the state of `leasehold` can be filled with many claims. */
export const serversOf = (load: Load): readonly Server[] => (load === "readers" ? ["leasehold"] : servers);
