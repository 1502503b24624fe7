import { CELLS } from "./batch.ts";

/** Registers the cells of the benchmarks at a coordinator, and returns a key for each. */
export async function cellKeys(url: string, operator: string): Promise<Record<string, string>> {
  const admin = async (path: string, body: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${operator}`, "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok && answer.status !== 409) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  };
  const keys: Record<string, string> = {};
  for (const cell of CELLS) {
    await admin("/v1/admin/cells", {
      cell_id: cell,
      name: `Cell ${cell}`,
      address: `https://cell-${cell}.example`,
    });
    keys[cell] = ((await admin("/v1/admin/keys", { role: "cell", cell_id: cell })) as { key: string }).key;
  }
  return keys;
}

/** Settings of both servers of Leasehold. */
export const VARIABLES = {
  // The other peers have no request log either.
  LEASEHOLD_REQUEST_LOG: "errors",
  // The part `refusals` leaves many leases outstanding.
  LEASEHOLD_OUTSTANDING_LEASES: "1000000",
  ...(process.env["BENCH_SHARDS"] === undefined ? {} : { LEASEHOLD_SHARDS: process.env["BENCH_SHARDS"] }),
};
