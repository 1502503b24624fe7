import { join } from "node:path";
import { startCoordinator } from "../../src/hosts/workerd/coordinator.ts";
import { createClient, type Client } from "../../src/users/client/client.ts";
import { CountingClient } from "../counts/counting-client.ts";
import { objectKinds, type RawCounts } from "../counts/raw-counts.ts";
import { fill } from "../growth/fill.ts";
import { variantOf } from "../growth/variants.ts";
import { claimedNames } from "./names.ts";
import { CELL } from "./routes.ts";
import { SHARDS } from "./site.ts";

/** A full page, and the most ranges, with the rows per range, that a verification sends in one call. */
const PAGE = 1_000;
const RANGES = 256;
const RANGE_ROWS = 64;
const CLAIMS = RANGES * RANGE_ROWS;
const LOOKED_UP = 100;
const SOURCE = "RAILS_TABLE_ROUTES";

/** What one call of a verification costs. It is the same on every machine. */
export interface CallCounts {
  call: "digests" | "list" | "lookup" | "export";
  /** The number of claims that the call covers. */
  claims: number;
  messages: number;
  rowsRead: number;
  rowsWritten: number;
}

/** Measures the calls on a Worker that counts. `folder` must be empty. */
export async function countReads(folder: string): Promise<CallCounts[]> {
  const { cells } = await fill(folder, variantOf({ claims: CLAIMS, cells: 1, shards: SHARDS }));
  const entryPoint = join(import.meta.dirname, "../counts/worker.ts");
  const variables = { LEASEHOLD_REQUEST_LOG: "errors", LEASEHOLD_SHARDS: String(SHARDS) };
  const coordinator = await startCoordinator({ port: 0, stateFolder: folder, variables, entryPoint });
  try {
    const counting = new CountingClient(coordinator.url);
    const client = createClient({ url: coordinator.url, key: cells[CELL] ?? "", cell: CELL });
    const counts: CallCounts[] = [];
    for (const { call, claims, run } of callsOf(client)) {
      // The first call also pays for one-time work, so it is not counted.
      await run();
      await counting.take();
      await run();
      counts.push({ call, claims, ...summed(await counting.take()) });
    }
    return counts;
  } finally {
    await coordinator.stop();
  }
}

function callsOf({
  records,
}: Client): { call: CallCounts["call"]; claims: number; run: () => Promise<unknown> }[] {
  const ranges = Array.from({ length: RANGES }, (_, index) => ({
    sourceIdGt: index === 0 ? undefined : String(index * RANGE_ROWS),
    sourceIdLte: String((index + 1) * RANGE_ROWS),
  }));
  return [
    { call: "digests", claims: CLAIMS, run: () => records.digests({ sourceType: SOURCE, ranges }) },
    {
      call: "list",
      claims: PAGE,
      run: () => records.list({ sourceType: SOURCE, sourceIdLte: String(PAGE), pageSize: PAGE }).all(),
    },
    {
      call: "lookup",
      claims: LOOKED_UP,
      run: () => records.lookup([...claimedNames(LOOKED_UP)].map((value) => ({ type: "ROUTES", value }))),
    },
    { call: "export", claims: CLAIMS, run: () => Array.fromAsync(records.export({ sourceType: SOURCE })) },
  ];
}

function summed(raw: RawCounts): Pick<CallCounts, "messages" | "rowsRead" | "rowsWritten"> {
  const sum = (name: "messages" | "rowsRead" | "rowsWritten"): number =>
    objectKinds.reduce((total, kind) => total + raw[kind][name], 0);
  return {
    messages: sum("messages"),
    rowsRead: sum("rowsRead") + raw.d1.rowsRead,
    rowsWritten: sum("rowsWritten") + raw.d1.rowsWritten,
  };
}
