import type { Batch, Bucket, Fetch } from "../../../src/users/client/index.ts";
import type { LeaseState } from "../../../src/coordinator/kernel/messages.ts";
import type {
  Answer,
  BatchOp,
  Call,
  Recorder,
  SeenConflict,
  SeenRecord,
} from "../../../src/users/conformance/history/history.ts";

/** Records every attempt of every call that the history contains, before it is sent and after its answer. */
export function recordingFetch(recorder: Recorder, client: string, inner: Fetch): Fetch {
  return async (url, init) => {
    const call = callOf(init.method, new URL(url).pathname, init.body);
    if (call === undefined) return inner(url, init);
    const id = recorder.invoke({ client, ...call });
    const response = await inner(url, init);
    const text = await response.text();
    recorder.complete(id, answerOf(call, response.status, text));
    return { status: response.status, headers: response.headers, text: async () => text };
  };
}

function callOf(method: string, path: string, body: string | undefined): Call | undefined {
  const [, cell, lease, decision] =
    /^\/v1\/cells\/([^/]+)\/leases\/([^/]+)(?:\/(commit|rollback))?$/.exec(path) ?? [];
  if (method === "POST" && path === "/v1/records/lookup") {
    return { kind: "lookup", buckets: (JSON.parse(body ?? "") as { buckets: Bucket[] }).buckets.map(nameOf) };
  }
  if (cell === undefined || lease === undefined) return undefined;
  if (method === "PUT") return { kind: "begin", cell, lease, ops: opsOf(JSON.parse(body ?? "") as Batch) };
  if (decision !== undefined)
    return { kind: "decide", cell, lease, outcome: decision === "commit" ? "COMMITTED" : "ROLLED_BACK" };
  return method === "GET" ? { kind: "get", cell, lease } : undefined;
}

/** The rig's names are ASCII, so lower case is their canonical form. */
const nameOf = ({ type, value }: Bucket): string => `${type}:${value.toLowerCase()}`;
const reference = ({ type, id }: { type: string; id: string | number }): string => `${type}:${id}`;

const opsOf = ({ creates = [], destroys = [], replaces = [] }: Batch): BatchOp[] => [
  ...creates.map((claim) => opOf("create", claim)),
  ...destroys.map((claim) => opOf("destroy", claim)),
  ...replaces.map((claim) => opOf("replace", claim)),
];

const opOf = (
  kind: BatchOp["kind"],
  { bucket, subject, source }: NonNullable<Batch["destroys"]>[number],
): BatchOp => ({
  kind,
  bucket: nameOf(bucket),
  value: bucket.value,
  ...(subject === undefined ? {} : { subject: reference(subject) }),
  ...(source === undefined ? {} : { source: reference(source) }),
});

interface ApiRecord {
  bucket: Bucket;
  cell_id: string;
  status: SeenRecord["status"];
  lease_uuid: string | null;
  subject: { type: string; id: string };
  source: { type: string; id: string };
  epoch: number;
}

interface ApiConflict {
  bucket: Bucket;
  kind: SeenConflict["kind"];
  owner?: "self" | "other";
}

interface ApiAnswer {
  lease?: { state: LeaseState; counts: { missing: number } };
  results?: { bucket: Bucket; record?: ApiRecord; unavailable?: object }[];
  code?: string;
  reason?: string;
  conflicts?: ApiConflict[];
}

function answerOf(call: Call, status: number, text: string): Answer {
  const answer = JSON.parse(text) as ApiAnswer;
  if (status >= 400 && status < 500 && answer.code !== undefined) {
    const { code, reason, conflicts } = answer;
    const met = conflicts?.map(({ bucket, kind, owner }) => ({
      bucket: nameOf(bucket),
      kind,
      ...(owner === undefined ? {} : { owner }),
    }));
    return {
      kind: "refused",
      code,
      ...(reason === undefined ? {} : { reason }),
      ...(met === undefined ? {} : { conflicts: met }),
    };
  }
  if (status >= 300) return { kind: "unknown" };
  const isPart = answer.results?.some(({ unavailable }) => unavailable !== undefined) === true;
  if (isPart) return { kind: "unknown" };
  if (answer.results !== undefined) {
    return {
      kind: "ok",
      found: Object.fromEntries(
        answer.results.map(({ bucket, record }) => [nameOf(bucket), record ? seen(record) : null]),
      ),
    };
  }
  if (answer.lease === undefined) return { kind: "unknown" };
  const { state, counts } = answer.lease;
  return {
    kind: "ok",
    state,
    ...(call.kind === "begin" ? { created: status === 201, missing: counts.missing } : {}),
  };
}

const seen = ({
  bucket: { value },
  cell_id: cell,
  lease_uuid: lease,
  status,
  subject,
  source,
  epoch,
}: ApiRecord): SeenRecord => ({
  cell,
  status,
  lease,
  epoch,
  value,
  subject: reference(subject),
  source: reference(source),
});
