import type { Batch, Bucket, ClientOptions, Conflict } from "leasehold/client";
import { currentAct } from "./act.ts";
import type { AskedName, Happening, Outcome, Refusal } from "./events.ts";
import type { Recorder } from "./recorder.ts";

type Fetch = NonNullable<ClientOptions["fetch"]>;

/** What the answer to a call was, as far as the panel shows it. */
interface Heard {
  outcome: Outcome;
  refusals: Refusal[];
  durationMs: number;
}

/** The client's way to the coordinator. Hooks tell how a call ended; here its lease and its names can be seen as well. */
export const recordedFetch =
  (recorder: Recorder): Fetch =>
  async (url, init) => {
    const happeningOf = leaseCall(url, init);
    if (happeningOf === undefined) return fetch(url, init);
    const started = performance.now();
    const record = (outcome: Outcome, refusals: Refusal[]): void =>
      recorder.add(happeningOf({ outcome, refusals, durationMs: Math.round(performance.now() - started) }));
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

/** Undefined for calls that change nothing: reconciliation makes many. */
function leaseCall(
  url: string,
  { method, body }: Parameters<Fetch>[1],
): ((heard: Heard) => Happening) | undefined {
  const [, uuid, decision] = PATH.exec(url) ?? [];
  if (uuid === undefined) return undefined;
  const act = currentAct();
  if (decision === "commit" || decision === "rollback")
    return ({ outcome, durationMs }) => ({
      kind: decision,
      uuid,
      outcome,
      durationMs,
      isReconciliation: act?.isReconciliation ?? false,
    });
  if (method !== "PUT") return undefined;
  const names = namesOf(JSON.parse(body ?? "{}") as Batch);
  return (heard) => ({ kind: "begin", uuid, what: act?.what ?? "Lease", names, ...heard });
}

const asked = (change: AskedName["change"], ops: readonly { bucket: Bucket }[]): AskedName[] =>
  ops.map(({ bucket }) => ({ change, type: bucket.type, value: bucket.value }));

const namesOf = ({ creates = [], destroys = [], replaces = [] }: Batch): AskedName[] => [
  ...asked("claim", creates),
  ...asked("give up", destroys),
  ...asked("respell", replaces),
];

function refusalsOf(body: string): Refusal[] {
  try {
    const { conflicts = [] } = JSON.parse(body) as { conflicts?: readonly Conflict[] };
    return conflicts.map(({ bucket, kind }) => ({ type: bucket.type, value: bucket.value, kind }));
  } catch {
    return [];
  }
}
