import type * as z from "zod";
import type { Principal } from "../../../auth/principal.ts";
import type { Cell } from "../../../kernel/directory/messages.ts";
import type { ClaimRecord } from "../../../kernel/messages.ts";
import type { RecordPosition } from "../messages.ts";
import { ok, refused } from "../../../kernel/refusal.ts";
import type { Types } from "../../../../common/types/types.ts";
import { recordRoutes, type lookupResults } from "./routes.ts";
import type * as schemas from "../../../api/contract/schemas.ts";
import type { Handlers } from "../../../api/handler.ts";
import {
  keyInPath,
  keysInBody,
  lookUp,
  lookUpMany,
  ownersOf,
  toUnavailable,
} from "../../../isolate/lookup.ts";
import { pageOf } from "../../../api/paging.ts";
import { storedTypes, toApiRecordFor, timeOf, toApiRecord } from "../../../api/answers.ts";
import { isSplit } from "./record-merge.ts";
import { digestRecords } from "./digest-handler.ts";
import { exportRecords } from "./export-handler.ts";
import { searchRecords } from "./search-handler.ts";
import { MAX_CALLS, rangeOf, readRange, selectionOf } from "./range-handler.ts";

const recordHandlers: Handlers<typeof recordRoutes> = {
  async getRecord({ deployment, waitUntil, principal, params }) {
    const key = await keyInPath(deployment, params);
    if (!key.ok) return key;
    const looked = await lookUp(deployment, [key.value]);
    if (!looked.ok) return looked;
    const record = looked.value[0]?.record ?? null;
    if (record === null) return refused("NOT_FOUND", "no cell has this name");
    const owners = await ownersOf(deployment, waitUntil, looked.value);
    if (!owners.ok) return owners;
    const known = await deployment.types.forAnswer(storedTypes([record]));
    if (!known.ok) return known;
    return ok({ status: 200, body: shown(record, principal, owners.value, known.value) });
  },

  async lookupRecords({ deployment, waitUntil, principal, body: { buckets } }) {
    const keys = await keysInBody(deployment, buckets, "buckets");
    if (!keys.ok) return keys;
    const looked = await lookUpMany(deployment, waitUntil, keys.value);
    if (!looked.ok) return looked;
    const { answers, cells } = looked.value;
    const records = answers.flatMap((each) => (each.ok ? (each.value.record ?? []) : []));
    const known = await deployment.types.forAnswer(storedTypes(records));
    if (!known.ok) return known;
    const results = buckets.flatMap((bucket, index): z.input<typeof lookupResults> => {
      const answer = answers[index];
      if (answer === undefined) return [];
      if (!answer.ok) return [{ bucket, unavailable: toUnavailable(answer.refusal) }];
      const { record } = answer.value;
      if (record === null) return [{ bucket, found: false }];
      return [{ bucket, found: true, ...shown(record, principal, cells, known.value) }];
    });
    return ok({ status: 200, body: { results } });
  },

  async listRecords(call) {
    const { deployment, query } = call;
    const selection = await selectionOf(deployment, query);
    if (!selection.ok) return selection;
    const range = rangeOf(query, deployment.config.limits);
    if (!range.ok) return range;
    const bucketTypes = [...new Set(query.bucket_type)].toSorted();
    const page = await pageOf<RecordPosition>({ ...call, query: { ...query, bucket_type: bucketTypes } });
    if (!page.ok) return page;
    const { limit, position, next } = page.value;
    const asOfMs = deployment.clock.now();
    const merged = await readRange(call, {
      ...range.value,
      ...selection.value,
      behind: position,
      limit,
      calls: MAX_CALLS,
    });
    if (!merged.ok) return merged;
    const types = await deployment.types.forAnswer(storedTypes(merged.value.records));
    if (!types.ok) return types;
    const body = {
      as_of: timeOf(asOfMs),
      records: merged.value.records.map((record) => toApiRecord(types.value, record)),
      split: isSplit(merged.value),
      next_page_token: await next(merged.value.next),
    };
    return ok({ status: 200, body });
  },

  searchRecords,

  digestRecords,
  exportRecords,
};

function shown(
  record: ClaimRecord,
  principal: Principal,
  owners: ReadonlyMap<string, Cell>,
  types: Types,
): z.input<typeof schemas.recordAnswer> {
  return {
    record: toApiRecordFor(types, principal, record),
    cell: { id: record.cell, address: owners.get(record.cell)?.address ?? "" },
  };
}

export { recordHandlers as handlers, recordRoutes as routes };
