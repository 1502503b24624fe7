import type { Batch, Bucket, ClientOptions, Conflict } from "leasehold/client";
import { currentAction } from "./action.ts";
import type { AskedName, EventDetails, Outcome, Refusal } from "./events.ts";
import type { Recorder } from "./recorder.ts";

type Fetch = NonNullable<ClientOptions["fetch"]>;

/** The result of a call, as far as the panel shows it. */
interface CallResult {
  outcome: Outcome;
  refusals: Refusal[];
  durationMs: number;
}

/**
 * A `fetch` for the client that records its calls. The client's hooks do not contain the lease and its names.
 */
export const recordedFetch =
  (recorder: Recorder): Fetch =>
  async (url, init) => {
    const detailsOf = leaseCall(url, init);
    if (detailsOf === undefined) return fetch(url, init);
    const started = performance.now();
    const record = (outcome: Outcome, refusals: Refusal[]): void =>
      recorder.add(detailsOf({ outcome, refusals, durationMs: Math.round(performance.now() - started) }));
    try {
      const { status, headers, ...response } = await answered(await fetch(url, init));
      record(
        status < 400 ? "ok" : status < 500 ? "refused" : "unknown",
        status < 400 ? [] : refusalsOf(response.body),
      );
      return { status, headers, text: () => Promise.resolve(response.body) };
    } catch (error) {
      record("unknown", []);
      throw error;
    }
  };

const answered = async (response: Response): Promise<{ status: number; headers: Headers; body: string }> => ({
  status: response.status,
  headers: response.headers,
  body: await response.text(),
});

const PATH = /\/leases\/([^/?]+)(?:\/(commit|rollback))?$/;

/** Returns undefined for calls that change nothing, because reconciliation makes many of them. */
function leaseCall(
  url: string,
  { method, body }: Parameters<Fetch>[1],
): ((result: CallResult) => EventDetails) | undefined {
  const [, uuid, decision] = PATH.exec(url) ?? [];
  if (uuid === undefined) return undefined;
  const action = currentAction();
  if (decision === "commit" || decision === "rollback")
    return ({ outcome, durationMs }) => ({
      kind: decision,
      uuid,
      outcome,
      durationMs,
      isReconciliation: action?.isReconciliation ?? false,
    });
  if (method !== "PUT") return undefined;
  const names = namesOf(JSON.parse(body ?? "{}") as Batch);
  return (result) => ({ kind: "begin", uuid, what: action?.what ?? "Lease", names, ...result });
}

const asked = (change: AskedName["change"], ops: readonly { bucket: Bucket }[]): AskedName[] =>
  ops.map(({ bucket }) => ({ change, type: bucket.type, value: bucket.value }));

const namesOf = ({ creates = [], destroys = [], replaces = [] }: Batch): AskedName[] => [
  ...asked("create", creates),
  ...asked("destroy", destroys),
  ...asked("replace", replaces),
];

function refusalsOf(body: string): Refusal[] {
  try {
    const { conflicts = [] } = JSON.parse(body) as { conflicts?: readonly Conflict[] };
    return conflicts.map(({ bucket, kind }) => ({ type: bucket.type, value: bucket.value, kind }));
  } catch {
    return [];
  }
}
