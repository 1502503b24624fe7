import { idFault } from "../../../../common/ids.ts";
import type { BucketKey, ClaimRecord, Subject } from "../../../kernel/messages.ts";
import type { FoundNames } from "../messages.ts";
import { ok, type Result } from "../../../kernel/refusal.ts";
import { storedTypes, toApiRecord } from "../../../api/answers.ts";
import { invalid } from "../../../api/batch.ts";
import { SEARCH_CALLS } from "./routes.ts";
import type { Deployment } from "../../../isolate/deployment.ts";
import type { Handler } from "../../../api/handler.ts";
import type { recordRoutes } from "./routes.ts";
import { lookUp } from "../../../isolate/lookup.ts";
import { pageOf } from "../../../api/paging.ts";
import { grownSince } from "../../../isolate/known-shards.ts";
import { reach, readTimeoutMs } from "../../../isolate/reach.ts";

/** Where a search continues: a shard, and the last key there that was visited. */
interface SearchPosition {
  shard: number;
  behind: BucketKey | null;
}

interface SearchToken extends SearchPosition {
  shards: number;
}

/**
 * Searches one shard after the other for the names of a subject. A shard only says which names to look up:
 * what the lookup shows is right also while leases hold the names (R2).
 */
export const searchRecords: Handler<(typeof recordRoutes)["searchRecords"]> = async (call) => {
  const { deployment, query } = call;
  const { subject_type: name, subject_id: id } = query;
  const fault = idFault(id, deployment.config.limits);
  if (fault !== undefined) return invalid("subject_id", fault);
  const known = await deployment.types.forRead([{ kind: "subject", name, field: "subject_type" }]);
  if (!known.ok) return known;
  const subject = { type: known.value.named("subject", name)?.number ?? 0, id };
  const page = await pageOf<SearchToken>(call);
  if (!page.ok) return page;
  const grown = await grownSince("page_token", call, ok(page.value.position));
  if (grown !== undefined) return grown;
  const { limit, position, next } = page.value;
  const found = await search(deployment, subject, limit, position ?? { shard: 0, behind: null });
  if (!found.ok) return found;
  const { records } = found.value;
  const types = await deployment.types.forAnswer(storedTypes(records));
  if (!types.ok) return types;
  const body = {
    records: records.map((record) => toApiRecord(types.value, record)),
    next_page_token: await next(found.value.next && { ...found.value.next, shards: deployment.shards }),
  };
  return ok({ status: 200, body });
};

async function search(
  deployment: Deployment,
  subject: Subject,
  limit: number,
  from: SearchPosition,
): Promise<Result<{ records: ClaimRecord[]; next: SearchPosition | undefined }>> {
  const records: ClaimRecord[] = [];
  let position: SearchPosition | undefined = from;
  for (let calls = 0; calls < SEARCH_CALLS && position !== undefined && records.length < limit; calls += 1) {
    const found = await ask(deployment, subject, limit - records.length, position);
    if (!found.ok) return found;
    const looked = await lookUp(deployment, found.value.keys);
    if (!looked.ok) return looked;
    for (const { record } of looked.value)
      if (record?.subject.type === subject.type && record.subject.id === subject.id) records.push(record);
    position = after(position.shard, found.value.next, deployment.shards);
  }
  return ok({ records, next: position });
}

const ask = (
  { objects, envelope, config }: Deployment,
  { type: subjectType, id: subjectId }: Subject,
  room: number,
  { shard, behind }: SearchPosition,
): Promise<Result<FoundNames>> =>
  reach(readTimeoutMs(config.limits), { name: `shard ${shard}` }, () =>
    objects.shard(shard).findNames({
      ...envelope,
      subjectType,
      subjectId,
      behind,
      limit: Math.min(room, config.limits.lookupBuckets),
    }),
  );

/** Undefined: all shards are searched. */
function after(shard: number, behind: BucketKey | null, shards: number): SearchPosition | undefined {
  if (behind !== null) return { shard, behind };
  return shard + 1 < shards ? { shard: shard + 1, behind: null } : undefined;
}
