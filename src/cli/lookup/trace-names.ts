import type { Bucket, Client, RouteAnswer } from "../../users/client/index.ts";
import { usageError, exitCodes } from "../framework/command-error.ts";
import { durationText } from "../../common/text/duration.ts";
import { fields } from "../output/table.ts";
import type { Result } from "../output/result.ts";
import { type FoundName, showHolder } from "./show-holder.ts";

interface Side {
  cell: string | null;
  epoch: number | null;
}

interface Trace {
  name: string;
  type: string;
  record: Side & Pick<FoundName, "status" | "lease" | "transfer"> & { created_at: string | null };
  route: Side & { address: string | null };
  /** The hash of the name by which reports refer to it. */
  key: string;
  shard: number;
  position: number;
  settled: boolean;
  age_ms: number;
  same: boolean;
}

/** A name may change between the two answers, so a difference counts only if it stays. */
const READS = 3;

/** Asks for the record and for the route of each name, and compares them. */
export async function traceNames(client: Client, found: readonly FoundName[]): Promise<Result> {
  const traces: Trace[] = [];
  for (const { name, type } of found) {
    if (type === null)
      throw usageError(`${JSON.stringify(name)} has no owner in any type: give --type to trace it`);
    traces.push(await traceTwice(client, { type: type as Bucket["type"], value: name }));
  }
  const isDrift = traces.some(({ same }) => !same);
  const isMissing = traces.some(({ record }) => record.cell === null);
  const steps = traces.flatMap(({ record }) => showHolder(record));
  return {
    document: { names: traces },
    lines: traces,
    text: () => traces.map(textOf).join("\n\n"),
    nextSteps: steps,
    exitCode: isDrift ? exitCodes.drift : isMissing ? exitCodes.notFound : exitCodes.ok,
  };
}

async function traceTwice(client: Client, bucket: Bucket): Promise<Trace> {
  let trace = await traceOnce(client, bucket);
  for (let reads = 1; reads < READS && !trace.same; reads += 1) trace = await traceOnce(client, bucket);
  return trace;
}

async function traceOnce(client: Client, bucket: Bucket): Promise<Trace> {
  const record = await recordOf(client, bucket);
  const { cell, epoch, key, shard, position, settled, ageMs } = await client.routing.find(bucket);
  const route = routeOf(cell, epoch);
  return {
    name: bucket.value,
    type: bucket.type,
    record,
    route,
    key,
    shard,
    position,
    settled,
    age_ms: ageMs,
    same: record.cell === route.cell && isSameEpoch(record, route),
  };
}

const routeOf = (cell: RouteAnswer["cell"], epoch: number | undefined): Trace["route"] => ({
  cell: cell?.id ?? null,
  epoch: epoch ?? null,
  address: cell?.address ?? null,
});

/** A cell is not told the epochs of other cells' names. */
const isSameEpoch = (record: Side, route: Side): boolean =>
  record.epoch === null || route.epoch === null || record.epoch === route.epoch;

async function recordOf(client: Client, bucket: Bucket): Promise<Trace["record"]> {
  const found = await client.records.find(bucket);
  if (found === undefined)
    return { cell: null, epoch: null, status: null, lease: null, transfer: null, created_at: null };
  const { record } = found;
  const whole = "epoch" in record ? record : undefined;
  return {
    cell: record.cell_id,
    epoch: whole?.epoch ?? null,
    status: record.status,
    lease: whole?.lease_uuid ?? null,
    transfer: whole?.transfer_id ?? null,
    created_at: whole?.created_at ?? null,
  };
}

const textOf = ({
  name,
  type,
  record,
  route,
  key,
  shard,
  position,
  settled,
  age_ms: ageMs,
  same,
}: Trace): string =>
  fields([
    ["name", name],
    ["type", type],
    ["record", sideOf(record)],
    ["route", sideOf(route)],
    ["compared", same ? "the same" : "DIFFERENT"],
    ["address", route.address],
    ["status", record.status],
    ["hold", holdOf(record)],
    ["settled", settled ? "yes" : "no: a lease holds the name, so don't cache the answer"],
    ["key", key],
    ["shard", shard],
    ["position", position],
    ["age", ageMs < 1_000 ? `${ageMs} ms` : durationText(ageMs)],
  ]);

const holdOf = ({ lease, transfer }: Trace["record"]): string =>
  transfer === null ? (lease === null ? "none" : `lease ${lease}`) : `transfer ${transfer}`;

const sideOf = ({ cell, epoch }: Side): string =>
  cell === null ? "no owner" : `cell ${cell}${epoch === null ? "" : `, epoch ${epoch}`}`;
