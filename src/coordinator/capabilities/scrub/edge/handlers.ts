import type * as z from "zod";
import type { Envelope } from "../../../kernel/messages.ts";
import type { ScrubFinding, ScrubPass, ScrubStatus, ScrubStep } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import type { Types } from "../../../../common/types/types.ts";
import { timeOf } from "../../../api/answers.ts";
import { scrubRoutes } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handlers } from "../../../api/handler.ts";
import { unknownShard } from "../../../isolate/known-shards.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";
import type { WaitUntil } from "../../../runtime.ts";

type ApiStatus = z.input<(typeof scrubRoutes)["getScrub"]["responses"][200]["schema"]>;
type ApiPass = NonNullable<ApiStatus["running"]>;

/** The calls of a part that scrubs itself. */
interface Scrubbed {
  scrub: (message: ScrubStep) => Promise<Result<ScrubStatus>>;
  scrubStatus: (message: Envelope) => Promise<Result<ScrubStatus>>;
}

/** A step asks other parts, which may not answer. */
export const SCRUB_STEP_TIMEOUT_MS = 30_000;

const ADVICE = "the step may still be carried out; you can repeat the call";

const scrubHandlers: Handlers<typeof scrubRoutes> = {
  async getScrub({ deployment, waitUntil, params: { part } }) {
    const target = await targetOf(deployment, waitUntil, part);
    if (!target.ok) return target;
    const { envelope, config } = deployment;
    const read = await reach(readTimeoutMs(config.limits), { name: part }, () =>
      target.value.scrubStatus(envelope),
    );
    if (!read.ok) return read;
    const types = await typesOf(deployment);
    return ok({ status: 200, body: toApiStatus(part, read.value, types.ok ? types.value : undefined) });
  },

  async stepScrub({ deployment, waitUntil, params: { part }, body: { restart } }) {
    const target = await targetOf(deployment, waitUntil, part);
    if (!target.ok) return target;
    const types = await typesOf(deployment);
    if (!types.ok) return types;
    const rules = types.value.entries.flatMap(({ kind, number, rule, isInUse }) =>
      kind === "bucket" && isInUse && rule !== null ? [[number, rule] as [number, typeof rule]] : [],
    );
    const begin = restart ? "always" : "if_none";
    const done = await reach(SCRUB_STEP_TIMEOUT_MS, { name: part, advice: ADVICE }, () =>
      target.value.scrub({ ...deployment.envelope, begin, rules }),
    );
    if (!done.ok) return done;
    return ok({ status: 200, body: toApiStatus(part, done.value, types.value) });
  },
};

/** The types of the directory. A damaged row may have a type that does not exist. */
async function typesOf({ types }: Deployment): Promise<Result<Types>> {
  const read = await types.read();
  return read.ok ? ok(read.value.types) : read;
}

/** The first call of an object creates it, so it must exist. */
async function targetOf(
  deployment: Deployment,
  waitUntil: WaitUntil,
  part: string,
): Promise<Result<Scrubbed>> {
  const { objects, directory } = deployment;
  const [kind, id = ""] = part.split("-");
  if (kind === "shard")
    return (await unknownShard(deployment, waitUntil, Number(id))) ?? ok(objects.shard(Number(id)));
  const cell = await directory.presentCell(id);
  return cell.ok ? ok(objects.ledger(id, cell.value.locationHint)) : cell;
}

const toApiStatus = (
  part: string,
  { state, running, last }: ScrubStatus,
  types: Types | undefined,
): ApiStatus => ({
  part,
  state,
  running: running && toApiPass(running, types),
  last: last && toApiPass(last, types),
});

const toApiPass = (pass: ScrubPass, types: Types | undefined): ApiPass => ({
  number: pass.number,
  started_at: timeOf(pass.startedAtMs),
  ended_at: pass.endedAtMs === null ? null : timeOf(pass.endedAtMs),
  table: pass.table,
  rows: pass.rows,
  found: Object.values(pass.counts).reduce((sum, count) => sum + count, 0),
  findings: pass.findings.map((each) => toApiFinding(each, types)),
  cleared_holds: pass.clearedHolds,
  unchecked: pass.unchecked,
});

const toApiFinding = (
  { kind, table, foundAtMs, key, cell, lease, epoch, missing }: ScrubFinding,
  types: Types | undefined,
): ApiPass["findings"][number] => ({
  kind,
  table,
  found_at: timeOf(foundAtMs),
  bucket: key && { type: types?.numbered("bucket", key.type)?.name ?? null, canonical: key.canonical },
  cell_id: cell,
  lease_uuid: lease,
  epoch,
  missing,
});

export { scrubHandlers as handlers, scrubRoutes as routes };
