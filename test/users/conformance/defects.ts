/** Defects that the conformance checks must find, planted between them and a real coordinator. */
import type { WebFetch } from "../../../src/users/conformance/api.ts";
import type { TestCoordinator } from "../../../src/users/testing/index.ts";

type Init = Parameters<WebFetch>[1];

interface Request {
  method: string;
  path: string;
  /** The body, if it is JSON. */
  body: Record<string, unknown>;
  init: Init;
}

/** Sends a request to the coordinator: the one that came, with these changes. */
type Forward = (change?: {
  method?: string;
  path?: string;
  body?: unknown;
  key?: string;
}) => Promise<Response>;

export interface Defect {
  name: string;
  /** The rule that must fail. */
  rule: string;
  /** Whether a history of a fixed seed must show it, too. */
  isInHistories?: boolean;
  plant: (coordinator: TestCoordinator) => (request: Request, forward: Forward) => Promise<Response>;
}

/** Puts a defect in front of a coordinator. */
export function withDefect(coordinator: TestCoordinator, { plant }: Pick<Defect, "plant">): WebFetch {
  const planted = plant(coordinator);
  return (url, init) => {
    const path = url.slice(coordinator.url.length);
    const forward: Forward = ({ method = init.method, path: to = path, body, key } = {}) => {
      const { body: sent, headers, ...more } = init;
      const payload = method === "GET" ? undefined : body === undefined ? sent : JSON.stringify(body);
      return coordinator.fetch(coordinator.url + to, {
        ...more,
        method,
        headers: key === undefined ? headers : { ...headers, authorization: `Bearer ${key}` },
        ...(payload === undefined ? {} : { body: payload }),
      });
    };
    return planted({ method: init.method, path, body: jsonOf(init.body), init }, forward);
  };
}

function jsonOf(text: unknown): Record<string, unknown> {
  try {
    return JSON.parse(String(text)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

const isBegin = ({ method, path }: Request): boolean => method === "PUT" && path.includes("/leases/");
const leaseOf = ({ path }: Request): string => /\/leases\/([^/?]+)/.exec(path)?.[1]?.toLowerCase() ?? "";
const isDecision = ({ path }: Request, decision: string): boolean => path.endsWith(`/${decision}`);

/** The answer as JSON, with a change. Headers stay. */
async function changed(answer: Response, change: (body: never) => unknown): Promise<Response> {
  const body = change((await answer.json()) as never);
  return new Response(JSON.stringify(body), { status: answer.status, headers: answer.headers });
}

/** Sets `held` of every digest, whatever leases there are. */
function setHeld(held: boolean): ReturnType<Defect["plant"]> {
  return async (request, forward) => {
    const answer = await forward();
    return request.path.endsWith("/digests") && answer.status === 200
      ? changed(answer, ({ digests, ...rest }: { digests: object[] }) => ({
          ...rest,
          digests: digests.map((digest) => ({ ...digest, held })),
        }))
      : answer;
  };
}

interface RecordJson {
  bucket: { type: string; value: string };
  status: string;
  epoch?: number;
}

interface LookupJson {
  results?: { bucket: object; found: boolean; record?: RecordJson }[];
  record?: RecordJson;
}

interface Refusal {
  code: string;
  conflicts?: { list: string; index: number; kind: string }[];
}

const isLookup = ({ path }: Request): boolean => path.startsWith("/v1/records/");

const granted = ({ path, body }: Request): Response => {
  const [, cell, uuid] = /^\/v1\/cells\/(\d+)\/leases\/([^/]+)/.exec(path) ?? [];
  const lease = { uuid, cell_id: cell, state: "GRANTED", created_at: "2026-01-01T00:00:00.000Z", ...body };
  return Response.json({ lease }, { status: 201 });
};

export const defects: readonly Defect[] = [
  {
    name: "a commit is answered and not carried out",
    rule: "C3",
    isInHistories: true,
    plant: () => async (request, forward) =>
      isDecision(request, "commit")
        ? changed(
            await forward({ method: "GET", path: request.path.replace(/\/commit$/, "") }),
            ({ lease, ...rest }: { lease?: object }) =>
              lease === undefined ? rest : { lease: { ...lease, state: "COMMITTED" } },
          )
        : forward(),
  },
  {
    name: "a replay of a begin makes a second lease",
    rule: "B2",
    plant: () => {
      const begun = new Set<string>();
      return async (request, forward) => {
        const uuid = leaseOf(request);
        if (!isBegin(request) || !begun.has(uuid)) {
          if (isBegin(request)) begun.add(uuid);
          return forward();
        }
        return granted(request);
      };
    },
  },
  {
    name: "a rollback of an unknown lease is forgotten",
    rule: "C7",
    plant: () => {
      const begun = new Set<string>();
      return async (request, forward) => {
        if (isBegin(request)) begun.add(leaseOf(request));
        if (!isDecision(request, "rollback") || begun.has(leaseOf(request))) return forward();
        return Response.json({ lease: { uuid: leaseOf(request), cell_id: "1", state: "ROLLED_BACK" } });
      };
    },
  },
  {
    name: "a list of leases loses one",
    rule: "R1",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return request.method === "GET" && /\/leases\?/.test(request.path) && answer.status === 200
        ? changed(answer, ({ leases, ...rest }: { leases: object[] }) => ({
            ...rest,
            leases: leases.filter((_, index) => index !== 1),
          }))
        : answer;
    },
  },
  {
    name: "a lookup shows an uncommitted destroy as not found",
    rule: "R2",
    isInHistories: true,
    plant: () => async (request, forward) => {
      const answer = await forward();
      if (!isLookup(request) || answer.status !== 200) return answer;
      const { record, results } = (await answer.clone().json()) as LookupJson;
      if (record?.status === "LEASE_DESTROYING")
        return Response.json(
          { code: "NOT_FOUND", status: 404 },
          { status: 404, headers: { "content-type": "application/problem+json" } },
        );
      return results === undefined
        ? answer
        : changed(answer, () => ({
            results: results.map((result) =>
              result.record?.status === "LEASE_DESTROYING" ? { bucket: result.bucket, found: false } : result,
            ),
          }));
    },
  },
  {
    name: "the epoch of a name stays the same after a destroy and a create",
    rule: "E1",
    isInHistories: true,
    plant: () => {
      const first = new Map<string, number>();
      const frozen = (record: RecordJson | undefined): RecordJson | undefined => {
        if (record?.epoch === undefined) return record;
        const name = record.bucket.value.toLowerCase();
        first.set(name, first.get(name) ?? record.epoch);
        return { ...record, epoch: first.get(name) ?? 0 };
      };
      return async (request, forward) => {
        const answer = await forward();
        if (!isLookup(request) || answer.status !== 200) return answer;
        return changed(answer, ({ record, results, ...rest }: LookupJson) => ({
          ...rest,
          ...(record === undefined ? {} : { record: frozen(record) }),
          ...(results === undefined
            ? {}
            : { results: results.map((each) => ({ ...each, record: frozen(each.record) })) }),
        }));
      };
    },
  },
  {
    name: "the opposite decision is accepted",
    rule: "C4",
    isInHistories: true,
    plant: () => async (request, forward) => {
      const answer = await forward();
      if (!isDecision(request, "rollback") || answer.status !== 409) return answer;
      return Response.json({ lease: { uuid: leaseOf(request), cell_id: "1", state: "ROLLED_BACK" } });
    },
  },
  {
    name: "a cell sees the leases of another cell",
    rule: "C5",
    plant:
      ({ keys }) =>
      async (request, forward) => {
        const answer = await forward();
        if (request.method !== "GET" || answer.status !== 404 || !/\/leases\/[^/]+$/.test(request.path))
          return answer;
        const theirs = await forward({
          path: request.path.replace("/cells/2/", "/cells/1/"),
          key: keys.cell("1"),
        });
        return theirs.status === 200 ? theirs : answer;
      },
  },
  {
    name: "a refusal omits a conflict",
    rule: "B6",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return isBegin(request) && answer.status === 409
        ? changed(answer, ({ conflicts = [], ...rest }: Refusal) => ({
            ...rest,
            conflicts: conflicts.slice(0, Math.max(1, conflicts.length - 1)),
          }))
        : answer;
    },
  },
  {
    name: "a refusal names the other cell",
    rule: "B6",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return isBegin(request) && answer.status === 409
        ? changed(answer, ({ detail, ...rest }: { detail: string }) => ({
            ...rest,
            detail: `${detail} It is of cell ${request.path.startsWith("/v1/cells/1/") ? 2 : 1}.`,
          }))
        : answer;
    },
  },
  {
    name: "the wire answers another code",
    rule: "W5",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return request.path.startsWith("/grpc/") && answer.status === 409
        ? changed(answer, (error: { code: string }) => ({ ...error, code: "aborted" }))
        : answer;
    },
  },
  {
    name: "a race has two owners",
    rule: "B4",
    isInHistories: true,
    plant: () => async (request, forward) => {
      const answer = await forward();
      if (!isBegin(request) || answer.status !== 409) return answer;
      const { code, conflicts = [] } = (await answer.clone().json()) as Refusal;
      return code === "ABORTED" && conflicts.every(({ list }) => list === "creates")
        ? granted(request)
        : answer;
    },
  },
  {
    name: "a batch with a conflict is granted in part",
    rule: "B4",
    plant: () => async (request, forward) => {
      const answer = await forward();
      if (!isBegin(request) || answer.status !== 409) return answer;
      const { conflicts = [] } = (await answer.clone().json()) as Refusal;
      const { creates = [] } = request.body as { creates?: object[] };
      const rest = creates.filter((_, at) => !conflicts.some(({ index }) => index === at));
      if (conflicts.length > 0 && rest.length > 0)
        await forward({ path: request.path.replace(/[^/]+$/, crypto.randomUUID()), body: { creates: rest } });
      return answer;
    },
  },
  {
    name: "an op with the epoch of another claim is granted",
    rule: "B10",
    plant: () => (request, forward) => {
      if (!isBegin(request)) return forward();
      const body = JSON.parse(
        JSON.stringify(request.body, (key, value: unknown) => (key === "epoch" ? undefined : value)),
      ) as unknown;
      return forward({ body });
    },
  },
  {
    name: "a replace is refused although its begin allows missing claims",
    rule: "B12",
    plant: () => (request, forward) => {
      const { replaces = [] } = (request.body ?? {}) as { replaces?: object[] };
      return replaces.length === 0
        ? forward()
        : forward({ body: { ...(request.body as object), allow_missing: false } });
    },
  },
  {
    name: "a page of records loses the first of its records",
    rule: "R3",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return request.path.includes("page_token") &&
        request.path.includes("/records?") &&
        answer.status === 200
        ? changed(answer, ({ records, ...rest }: { records: object[] }) => ({
            ...rest,
            records: records.slice(1),
          }))
        : answer;
    },
  },
  {
    name: "a digest is never held",
    rule: "R4",
    plant: () => setHeld(false),
  },
  {
    name: "a digest is always held",
    rule: "R4",
    plant: () => setHeld(true),
  },
  {
    name: "a digest lacks what the last commit changed",
    rule: "R4",
    plant: () => {
      const before = new Map<string, Response>();
      let isStale = false;
      return async (request, forward) => {
        if (isDecision(request, "commit")) isStale = true;
        if (!request.path.endsWith("/digests")) return forward();
        const asked = JSON.stringify(request.body);
        const shown = before.get(asked);
        if (isStale && shown !== undefined) return shown.clone();
        isStale = false;
        const answer = await forward();
        const { digests = [] } = (await answer.clone().json()) as { digests?: { held: boolean }[] };
        if (digests.every(({ held }) => !held)) before.set(asked, answer.clone());
        return answer;
      };
    },
  },
  {
    name: "a route may always be kept",
    rule: "Q2",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return request.path.startsWith("/v1/route/") && answer.status === 200
        ? changed(answer, (route: object) => ({ ...route, settled: true }))
        : answer;
    },
  },
  {
    name: "a report lacks a key",
    rule: "Q3",
    plant: () => async (request, forward) => {
      const answer = await forward();
      return request.path.startsWith("/v1/reports/") && answer.status === 200
        ? changed(answer, (report: object) => ({ ...report, held: [] }))
        : answer;
    },
  },
  {
    name: "lookups show what they showed before",
    rule: "C3",
    isInHistories: true,
    plant: () => {
      const shown = new Map<string, { response: Response; uses: number }>();
      return async (request, forward) => {
        if (!isLookup(request)) return forward();
        const who = request.init.headers["authorization"];
        const name = JSON.stringify([who, request.path, request.body]);
        const before = shown.get(name);
        if (before !== undefined && before.uses < 3) {
          before.uses += 1;
          return before.response.clone();
        }
        const response = await forward();
        shown.set(name, { response: response.clone(), uses: 0 });
        return response;
      };
    },
  },
  {
    name: "a key is accepted for every cell",
    rule: "API",
    plant:
      ({ keys }) =>
      (request, forward) => {
        const cell = /^\/v1\/cells\/([12])\//.exec(request.path)?.[1];
        return cell === undefined ? forward() : forward({ key: keys.cell(cell) });
      },
  },
];
