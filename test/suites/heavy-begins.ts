import { v4 as newUuid } from "uuid";
import { deploymentOf } from "../../src/coordinator/isolate/deployment.ts";
import { FairShares } from "../../src/coordinator/api/fair-shares.ts";
import type { Env } from "../../src/coordinator/env.ts";
import { wallClock } from "../../src/coordinator/runtime.ts";
import type { Client } from "./conformance/client.ts";

const LARGE = 20;
const CLAIMS = 100;

/**
 * Cell 1 sends 20 begins of 100 claims at once. When the first one gets to the ledger, cell 2 sends a small
 * one.
 *
 * @returns the cells to whose ledgers the begins were sent, in order
 */
export async function orderOfBegins(api: Client, env: Env): Promise<string[]> {
  const begin = async (cell: string, call: number, claims: number): Promise<void> => {
    const creates = Array.from({ length: claims }, (_, index) => ({
      bucket: { type: "USERNAMES", value: `name-${call}-${index}` },
      subject: { type: "USER", id: String(index + 1) },
      source: { type: "RAILS_TABLE_USERS", id: String(index + 1) },
    }));
    const path = `/v1/cells/${cell}/leases/${newUuid()}`;
    const { status, text } = await api.send("PUT", path, { key: `cell ${cell}`, body: { creates } });
    if (status !== 201) throw new Error(`a begin was answered ${status} ${text}`);
  };
  // The first use of a ledger and of a type needs more messages.
  await begin("1", -1, 1);
  await begin("2", -2, 1);
  const order: string[] = [];
  const deployment = deploymentOf(env);
  // No begin takes so long that it no longer counts, however slow the machine is.
  const fairShares = new FairShares({ ...wallClock, now: () => 0 });
  Object.assign(deployment, { fairShares });
  // A caller alone has a larger share.
  await begin("2", -3, 1);
  const { objects } = deployment;
  const ledger = objects.ledger.bind(objects);
  const first = Promise.withResolvers<void>();
  objects.ledger = (cell) => {
    order.push(cell);
    first.resolve();
    return ledger(cell);
  };
  const large = Array.from({ length: LARGE }, (_, call) => begin("1", call, CLAIMS));
  await first.promise;
  await Promise.all([...large, begin("2", LARGE, 1)]);
  objects.ledger = ledger;
  return order;
}
