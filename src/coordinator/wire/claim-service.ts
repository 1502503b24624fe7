import { create } from "@bufbuild/protobuf";
import {
  anyPack,
  anyUnpack,
  StringValueSchema,
  timestampFromDate,
  type Any,
  type Timestamp,
} from "@bufbuild/protobuf/wkt";
import { ok, type Result } from "../kernel/refusal.ts";
import type { TypeKind } from "../../common/types/types.ts";
import { invalid } from "../api/batch.ts";
import { uuid as uuidField } from "../api/contract/fields.ts";
import type { AnswerOf } from "../api/internal-api.ts";
import { validate } from "../api/validate.ts";
import { batchOfUpdate } from "./batch-of-update.ts";
import { callOf, type WireCall, type WireContext, type WireService } from "./wire-call.ts";
import {
  type ClaimService,
  GetRecordResponseSchema,
  LeaseRecordSchema,
  ListRecordsResponseSchema,
  Record_Status,
  RecordSchema,
  SourceSchema,
  type ListRecordsRequest,
  type ListRecordsResponse,
  type Record as WireRecord,
} from "./protobuf.ts";
import { getCells, infoOf } from "./classify-service.ts";
import { namedAs, nameOf, type Form, bytesOfSourceId, sourceIdOf, typesOf } from "./names.ts";
import { oldNext, oldSourceId } from "./oldest-generation.ts";

/** Chooses the id of the lease, so that a begin whose answer was lost can be repeated. */
const IDEMPOTENCY_KEY = "idempotency-key";
/** Why an operator decides a lease. The API requires it of operators. */
const REASON = "leasehold-reason";

type ApiRecord = AnswerOf<"listRecords">["records"][number];

export const claimService: WireService<typeof ClaimService> = {
  getCells,

  async getRecord(request, context) {
    const call = await callOf(context, "getRecord");
    const name = call.value(nameOf(request, ""));
    const { nameOf: nameOfType } = call.value(
      await typesOf(call.deployment, [{ kind: "bucket", number: name.number, field: name.field }]),
    );
    const params = { bucket_type: nameOfType("bucket", name.number), value: name.value };
    const { record, cell } = await call.send("getRecord", { params });
    return create(GetRecordResponseSchema, {
      record: await recordOf(call, record, name.form),
      cellInfo: infoOf(cell),
    });
  },

  async beginUpdate(request, context) {
    const cell = String(request.cellId);
    const call = await callOf(context, "beginLease", cell);
    const key = context.requestHeader.get(IDEMPOTENCY_KEY);
    const id = key === null ? undefined : call.value(validate(uuidField, key, IDEMPOTENCY_KEY));
    const { batch, placed } = call.value(await batchOfUpdate(call.deployment, request));
    const { lease } =
      id === undefined
        ? await call.send("beginLeaseWithNewId", { params: { cell }, body: batch }, placed)
        : await call.send("beginLease", { params: { cell, uuid: id }, body: batch }, placed);
    return { cellId: BigInt(lease.cell_id), leaseUuid: { value: lease.uuid } };
  },

  async commitUpdate({ cellId, leaseUuid }, context) {
    await decide(context, "commitLease", String(cellId), leaseUuid?.value);
    return {};
  },

  async rollbackUpdate({ cellId, leaseUuid }, context) {
    await decide(context, "rollbackLease", String(cellId), leaseUuid?.value);
    return {};
  },

  async listLeases({ cellId, next, limit, createdAfter }, context) {
    const cell = String(cellId);
    const call = await callOf(context, "listLeases", cell);
    const query = {
      page_size: call.value(pageSize(limit)),
      created_after: createdAfter && call.value(momentOf(createdAfter, "created_after")),
    };
    let token = call.value(tokenOf(next));
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const page = await call.send("listLeases", {
        params: { cell },
        query: { ...query, page_token: token },
      });
      token = page.next_page_token;
      if (page.leases.length === 0 && token !== "") continue;
      return {
        leases: page.leases.map(({ uuid: id, created_at: at }) =>
          create(LeaseRecordSchema, { uuid: { value: id }, createdAt: timeOf(at), updatedAt: timeOf(at) }),
        ),
        ...nextOf(token),
      };
    }
    return tooSparse(call);
  },

  async listRecords(request, context) {
    const cell = String(request.cellId);
    const call = await callOf(context, "listRecords", cell);
    if (context.isOldest) return oldestPage(call, cell, request);
    const paged = request.next === undefined ? request.limit !== undefined && "limit" : "next";
    if (paged === false) return rangeOfRecords(call, cell, request);
    if (hasRange(request)) call.value(invalid(paged, "must not be sent beside a range or types"));
    const { records, next } = await readPage(call, cell, request);
    const shown = records.map((record) => recordOf(call, record, "claim"));
    return create(ListRecordsResponseSchema, { records: await Promise.all(shown), ...nextOf(next) });
  },
};

async function decide(
  context: WireContext,
  route: "commitLease" | "rollbackLease",
  cell: string,
  sent: string | undefined,
): Promise<void> {
  const call = await callOf(context, route, cell);
  const id = call.value(validate(uuidField, sent, "lease_uuid"));
  const reason = context.requestHeader.get(REASON);
  await call.send(route, {
    params: { cell, uuid: id },
    ...(reason === null ? {} : { body: { reason } }),
  });
}

const hasRange = (request: ListRecordsRequest): boolean =>
  [request.sourceIdGt, request.sourceIdLte, request.claimTypes, request.bucketTypes].some(
    ({ length }) => length > 0,
  );

/** A page of the oldest generation, with buckets and whole numbers. */
async function oldestPage(
  call: WireCall,
  cell: string,
  request: ListRecordsRequest,
): Promise<ListRecordsResponse> {
  const page = await readPage(call, cell, request);
  const records = await Promise.all(
    page.records.map(async (record) => {
      const made = await recordOf(call, record, "bucket");
      const id = int64Of(call, record.source.id, "source");
      const source = create(SourceSchema, { type: made.metadata?.source?.type ?? 0 });
      if (made.metadata !== undefined)
        made.metadata.source = { ...source, $unknown: [oldSourceId(String(id))] };
      return made;
    }),
  );
  const { next } = nextOf(page.next);
  const answer = create(ListRecordsResponseSchema, { records });
  if (next !== undefined) answer.$unknown = [oldNext(next)];
  return answer;
}

/** Reads records by `next` and `limit`. */
async function readPage(
  call: WireCall,
  cell: string,
  { sourceType, next, limit }: ListRecordsRequest,
): Promise<{ records: readonly ApiRecord[]; next: string }> {
  const { nameOf: nameOfType } = call.value(await typesOf(call.deployment, [sourceField(sourceType)]));
  const query = { source_type: nameOfType("source", sourceType), page_size: call.value(pageSize(limit)) };
  let token = call.value(tokenOf(next));
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await call.send("listRecords", { params: { cell }, query: { ...query, page_token: token } });
    token = page.next_page_token;
    if (page.records.length > 0 || token === "") return { records: page.records, next: token };
  }
  return tooSparse(call);
}

const sourceField = (number: number) => ({ kind: "source" as const, number, field: "source_type" });

/**
 * The records of a range of source ids. The client continues after the last source id that it got, so all
 * records of an id are in the answer, and an answer with more to follow is never empty.
 */
async function rangeOfRecords(
  call: WireCall,
  cell: string,
  { sourceType, bucketTypes, claimTypes, sourceIdGt: gt, sourceIdLte: lte }: ListRecordsRequest,
): Promise<ListRecordsResponse> {
  const types = claimTypes.length > 0 ? claimTypes : bucketTypes;
  const field = claimTypes.length > 0 ? "claim_types" : "bucket_types";
  const { nameOf: nameOfType } = call.value(
    await typesOf(call.deployment, [
      sourceField(sourceType),
      ...types.map((number, index) => ({ kind: "bucket" as const, number, field: `${field}[${index}]` })),
    ]),
  );
  const query = {
    source_type: nameOfType("source", sourceType),
    bucket_type: types.map((number) => nameOfType("bucket", number)),
    ...(gt.length === 0 ? {} : { source_id_gt: call.value(sourceIdOf(gt, "source_id_gt")) }),
    ...(lte.length === 0 ? {} : { source_id_lte: call.value(sourceIdOf(lte, "source_id_lte")) }),
  };
  const form = bucketTypes.length > 0 && claimTypes.length === 0 ? "bucket" : "claim";
  const found: ApiRecord[] = [];
  let token = "";
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await call.send("listRecords", { params: { cell }, query: { ...query, page_token: token } });
    found.push(...page.records);
    token = page.next_page_token;
    if (token !== "" && (found.length === 0 || page.split)) continue;
    const records = await Promise.all(found.map((record) => recordOf(call, record, form)));
    return create(ListRecordsResponseSchema, { records, truncated: token !== "" });
  }
  return found.length === 0
    ? tooSparse(call)
    : call.fail("RESOURCE_EXHAUSTED", "one source id has too many records; list them over HTTP");
}

/**
 * The pages that one call reads at most. Clients stop at an empty page, so one that has nothing is not
 * answered while more may follow. Each may send 900 messages to objects, of the 10,000 that the platform
 * allows for a request.
 */
const MOST_PAGES = 4;

const tooSparse = (call: WireCall): never =>
  call.fail("UNAVAILABLE", "nothing was found in the part that one call reads; ask for less, or over HTTP");

const statuses = {
  ACTIVE: Record_Status.ACTIVE,
  LEASE_CREATING: Record_Status.LEASE_CREATING,
  LEASE_DESTROYING: Record_Status.LEASE_DESTROYING,
} as const;

type SomeRecord = Partial<ApiRecord> & Pick<ApiRecord, "bucket" | "cell_id" | "status">;

/** Of another cell's name, a cell only sees who has it. */
async function recordOf(
  call: WireCall,
  { uuid, bucket, subject, source, cell_id: cell, status, ...times }: SomeRecord,
  form: Form,
): Promise<WireRecord> {
  const { lease_uuid: lease, created_at: createdAt, updated_at: updatedAt } = times;
  const types = call.value(await call.deployment.types.forRead([]));
  const numberOf = (kind: TypeKind, name: string): number =>
    types.named(kind, name)?.number ??
    call.fail("UNAVAILABLE", "a type of the answer cannot be read; repeat the call");
  return create(RecordSchema, {
    ...(uuid === undefined ? {} : { uuid: { value: uuid } }),
    metadata: {
      ...namedAs(form, numberOf("bucket", bucket.type), bucket.value, (text) => int64Of(call, text, "claim")),
      ...(subject === undefined
        ? {}
        : { subject: { type: numberOf("subject", subject.type), id: int64Of(call, subject.id, "subject") } }),
      ...(source === undefined
        ? {}
        : {
            source: {
              type: numberOf("source", source.type),
              railsPrimaryKeyId: bytesOfSourceId(source.id),
            },
          }),
    },
    cellId: BigInt(cell),
    status: statuses[status],
    ...(lease == null ? {} : { leaseUuid: { value: lease } }),
    ...(createdAt === undefined ? {} : { createdAt: timeOf(createdAt) }),
    ...(updatedAt === undefined ? {} : { updatedAt: timeOf(updatedAt) }),
  });
}

/** Over HTTP, ids are any text. Those of subjects and of some claims have only 64 bits here. */
function int64Of(call: WireCall, text: string, what: string): bigint {
  if (/^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)) return BigInt(text);
  const detail = `the answer has a ${what} with an id that is no int64; read it over HTTP`;
  return call.fail("FAILED_PRECONDITION", detail);
}

const timeOf = (text: string): Timestamp => timestampFromDate(new Date(text));

function pageSize(limit: number | undefined): Result<string | undefined> {
  if (limit === undefined) return ok(undefined);
  return limit > 0 ? ok(String(limit)) : invalid("limit", "must be above 0");
}

/** With all digits of the nanoseconds, because the API rounds up. */
function momentOf({ seconds, nanos }: Timestamp, field: string): Result<string> {
  const ms = Number(seconds) * 1_000;
  if (Math.abs(ms) > 8.64e15 || nanos < 0 || nanos > 999_999_999) return invalid(field, "must be a time");
  return ok(new Date(ms).toISOString().replace(/\.\d+Z$/, `.${String(nanos).padStart(9, "0")}Z`));
}

const nextOf = (token: string): { next?: Any } =>
  token === "" ? {} : { next: anyPack(StringValueSchema, create(StringValueSchema, { value: token })) };

function tokenOf(next: Any | undefined): Result<string> {
  if (next === undefined || next.typeUrl === "") return ok("");
  try {
    const message = anyUnpack(next, StringValueSchema);
    if (message !== undefined) return ok(message.value);
  } catch {
    // It is no message of the type that it names.
  }
  return invalid("next", "must be that of the answer before");
}
