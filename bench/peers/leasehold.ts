/** The peer `leasehold`, as `npm start` runs it. */
import { startCoordinator } from "../../scripts/coordinator.ts";
import { CELLS } from "./batch.ts";
import { folderOf, serve } from "./serve.ts";

/** No request log, because the other peers have none either. */
const VARIABLES = {
  LEASEHOLD_REQUEST_LOG: "errors",
  // The part `refusals` leaves many leases outstanding.
  LEASEHOLD_OUTSTANDING_LEASES: "1000000",
  ...(process.env["BENCH_SHARDS"] === undefined ? {} : { LEASEHOLD_SHARDS: process.env["BENCH_SHARDS"] }),
};

const coordinator = await startCoordinator({
  port: 0,
  stateFolder: folderOf(process.argv),
  variables: VARIABLES,
});
const { url, keys: known } = coordinator;

async function admin(path: string, body: unknown): Promise<unknown> {
  const headers = { authorization: `Bearer ${known.operator}`, "content-type": "application/json" };
  const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok && answer.status !== 409) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

const keys: Record<string, string> = {};
for (const cell of CELLS) {
  await admin("/v1/admin/cells", {
    cell_id: cell,
    name: `Cell ${cell}`,
    address: `https://cell-${cell}.example`,
  });
  keys[cell] = ((await admin("/v1/admin/keys", { role: "cell", cell_id: cell })) as { key: string }).key;
}
serve({ url, keys, router: known.router }, () => coordinator.stop());
