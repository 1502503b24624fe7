/** Messages of the claims service for tests. */
import { ConnectError, type Client as WireClient } from "@connectrpc/connect";
import { expect } from "vitest";
import type { ClaimService } from "../../../src/coordinator/wire/protobuf.ts";
import type { Client } from "../conformance/client.ts";
import { applied, freshName } from "../conformance/leases.ts";

export const idBytes = (id: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(id));
  return bytes;
};

export const ROUTES_TABLE = 3;
export const record = (route: string, id = 42, subject = 7) => ({
  claim: { claim: { case: "route" as const, value: route } },
  subject: { type: 2, id: BigInt(subject) },
  source: { type: ROUTES_TABLE, railsPrimaryKeyId: idBytes(id) },
});
export const begin = (createRecords: object[], destroyRecords: object[] = [], cellId = 1n) => ({
  cellId,
  createRecords,
  destroyRecords,
});
export const claimOf = (route: string) => ({ claim: { claim: { case: "route" as const, value: route } } });

export const failure = async (call: Promise<unknown>): Promise<ConnectError> => {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConnectError);
  return error as ConnectError;
};

/** Commits claims of a name for each id. */
export async function own(
  api: Client,
  client: WireClient<typeof ClaimService>,
  ids: readonly number[],
  cell = 1,
): Promise<string[]> {
  const names = ids.map(() => freshName());
  const records = names.map((name, index) => record(name, ids[index]));
  const { leaseUuid } = await client.beginUpdate(begin(records, [], BigInt(cell)));
  await client.commitUpdate({ cellId: BigInt(cell), leaseUuid });
  for (const name of names) await applied(api, name);
  return names;
}
