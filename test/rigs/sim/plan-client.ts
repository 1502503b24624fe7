import type { Io } from "../../../src/cli/framework/io.ts";
import type { Client } from "../../../src/client/index.ts";
import { LeaseholdError } from "../../../src/client/errors.ts";
import type { Change as ApiChange } from "../../../src/client/api-types.ts";
import type { BeginAnswer, ChangesPage, Reply } from "../../../src/core/messages.ts";
import { toApiChange } from "../../../src/http/answers.ts";
import { formatPositions, parsePositions } from "../../../src/router/positions.ts";
import { shipped } from "../../support/types.ts";
import type { Part } from "./part.ts";
import type { Simulation } from "./simulation.ts";

// The parts of the client with which an operator reads changes and carries out a plan. They call the objects
// without the HTTP layer, as `Api` does.

const OPERATOR = { role: "operator", keyId: "operator", expiresAtMs: Number.MAX_SAFE_INTEGER } as const;

export function planIo({ operator }: Simulation): Io {
  const io: Pick<Io, "signal" | "err" | "wait"> = {
    signal: new AbortController().signal,
    err: { write: async () => {} } as unknown as Io["err"],
    wait: (ms) => operator.sleep(ms),
  };
  return io as Io;
}

/** A client that reads the changes of one shard. */
export function planClient(simulation: Simulation, shard: number): Client {
  const cells = simulation.cells.map(({ id }) => ({ cell_id: id, state: "FROZEN", removed_at: null }));
  const client = {
    cells: { list: () => ({ all: async () => cells }) },
    changes: { page: (options: { after?: string; pageSize: number }) => pageOf(simulation, shard, options) },
    forCell: (cell: string) => ({
      leases: {
        begin: async (batch: object, { uuid }: { uuid: string }) => begin(simulation, cell, batch, uuid),
        commit: async (uuid: string, { reason }: { reason: string }) => {
          const decision = { caller: OPERATOR, requestId: "", lease: uuid, outcome: "COMMITTED", reason };
          await valueOf(simulation, simulation.coordinator.ledger(cell), "decide", decision);
        },
      },
    }),
  };
  return client as unknown as Client;
}

async function begin(
  simulation: Simulation,
  id: string,
  batch: object,
  uuid: string,
): Promise<{ state: string }> {
  const cell = simulation.cells.find((each) => each.id === id);
  if (cell === undefined) throw new Error(`there is no cell ${id}`);
  const { lease } = await valueOf<BeginAnswer>(simulation, simulation.coordinator.ledger(id), "begin", {
    caller: OPERATOR,
    requestId: "",
    lease: uuid,
    ops: cell.placed(batch),
    allowMissing: false,
    payloadHash: JSON.stringify(batch),
    isVerification: true,
  });
  return lease;
}

/** Reads a page of one shard: in these runs, shards keep only a few transactions. */
async function pageOf(
  simulation: Simulation,
  shard: number,
  { after, pageSize }: { after?: string; pageSize: number },
): Promise<{ changes: ApiChange[]; checkpoint: string; unavailable: number[]; hasMore: boolean }> {
  const position = after === undefined ? null : (parsePositions(after)?.get(shard) ?? 0);
  const reply = await listChanges(simulation, shard, position, pageSize);
  if (reply?.ok !== true) throw errorOf(reply);
  const { through, hasMore } = reply.value;
  const checkpoint = formatPositions(new Map([[shard, through]]));
  return { changes: apiChanges(shard, reply.value), checkpoint, unavailable: [], hasMore };
}

export const listChanges = (
  { coordinator, operator }: Simulation,
  shard: number,
  after: number | null,
  limit: number,
): Promise<Reply<ChangesPage> | undefined> =>
  operator.reply(coordinator.shard(shard), "listChanges", {
    after,
    cell: null,
    type: null,
    limit,
  }) as Promise<Reply<ChangesPage> | undefined>;

/** The changes of a page, without those of declared types, of which the names of plans have none. */
export const apiChanges = (shard: number, { changes }: ChangesPage): ApiChange[] =>
  changes
    .filter(({ claim }) => claim === undefined || shipped.numbered("bucket", claim.type) !== undefined)
    .map((change) => toApiChange(shipped, shard, change) as ApiChange);

async function valueOf<T>(
  { operator }: Simulation,
  part: Part<object>,
  method: string,
  fields: object,
): Promise<T> {
  const reply = await operator.reply(part, method, fields);
  if (reply?.ok !== true) throw errorOf(reply);
  return reply.value as T;
}

function errorOf(reply: Extract<Reply<unknown>, { ok: false }> | undefined): LeaseholdError {
  if (reply === undefined) return new LeaseholdError("no answer", { code: "UNAVAILABLE" });
  const { code, detail, reason, conflicts } = reply.refusal;
  return new LeaseholdError(detail, {
    code,
    reason,
    ...(conflicts && { conflicts: conflicts as unknown as LeaseholdError["conflicts"] }),
  });
}
