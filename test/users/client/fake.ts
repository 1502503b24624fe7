import {
  createClient,
  LeaseholdError,
  type Client,
  type ClientOptions,
  type Fetch,
} from "../../../src/users/client/index.ts";

export const UUID = "01890000-0000-7000-8000-000000000001";

export interface Sent {
  method: string;
  url: string;
  body: string | undefined;
  headers: Record<string, string>;
  signal: AbortSignal;
}

export interface Reply {
  status: number;
  json?: unknown;
  text?: string;
  headers?: Record<string, string>;
}

/** An error breaks the connection. A function may delay its reply. */
export type Answering = Reply | Error | ((sent: Sent) => Promise<Reply>);

export interface Fake {
  fetch: Fetch;
  sent: Sent[];
}

/** Answers with the replies in turn, and repeats the last one. */
export function fakeFetch(...replies: readonly Answering[]): Fake {
  const sent: Sent[] = [];
  const fetch: Fetch = async (url, { method, body, headers, signal }) => {
    const each = { method, url, body, headers, signal };
    sent.push(each);
    const next = replies[Math.min(sent.length, replies.length) - 1] ?? new Error("no reply");
    if (next instanceof Error) throw next;
    return responseOf(typeof next === "function" ? await next(each) : next);
  };
  return { fetch, sent };
}

export const responseOf = ({ status, json, text, headers }: Reply): Awaited<ReturnType<Fetch>> => ({
  status,
  headers: new Headers({
    "content-type": status < 400 ? "application/json" : "application/problem+json",
    ...headers,
  }),
  text: async () => text ?? JSON.stringify(json),
});

/** Makes a client of cell 7 with short backoffs, and records what it sends. */
export function fakeClient(
  replies: readonly Answering[],
  options: Partial<ClientOptions> = {},
): { client: Client; sent: Sent[] } {
  const { fetch, sent } = fakeFetch(...replies);
  return {
    client: createClient({
      url: "http://leasehold.test/",
      key: "secret",
      cell: "7",
      backoffMs: 1,
      fetch,
      ...options,
    }),
    sent,
  };
}

export const TIME = "2026-11-20T12:00:00.000Z";

export const leaseOf = (state: string, uuid = UUID): Record<string, unknown> => ({
  uuid,
  cell_id: "7",
  state,
  created_at: TIME,
  age_ms: 12,
  counts: { creates: 1, destroys: 0, replaces: 0, missing: 0 },
});

export const granted: Reply = { status: 201, json: { lease: leaseOf("GRANTED") } };
export const committed: Reply = { status: 200, json: { lease: leaseOf("COMMITTED") } };
export const rolledBack: Reply = { status: 200, json: { lease: leaseOf("ROLLED_BACK") } };

export const recordOf = (value: string, cell = "7"): Record<string, unknown> => ({
  uuid: UUID,
  bucket: { type: "ROUTES", value },
  subject: { type: "NAMESPACE", id: "1" },
  source: { type: "RAILS_TABLE_ROUTES", id: "1" },
  cell_id: cell,
  epoch: 1,
  status: "ACTIVE",
  lease_uuid: null,
  created_at: TIME,
  updated_at: TIME,
});

export const problem = (
  status: number,
  code: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Reply => ({
  status,
  json: {
    type: "/docs",
    title: code,
    status,
    detail: `${code}.`,
    code,
    retryable: status === 429,
    request_id: "request-1",
    ...more,
  },
  headers,
});

export const unavailable = problem(503, "UNAVAILABLE", { retryable: true });
/** A limit, which passes by itself. */
export const busy = problem(429, "RESOURCE_EXHAUSTED");

/** Never answers, and rejects when its signal aborts. */
export const hangs = ({ signal }: Sent): Promise<Reply> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });

/** Returns the error of a call that must fail. */
export async function errorOf(call: Promise<unknown>): Promise<LeaseholdError> {
  const outcome = await call.then(
    (value) => new Error(`the call succeeded: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (outcome instanceof LeaseholdError) return outcome;
  throw outcome;
}
