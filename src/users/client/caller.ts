import type { Answer, Refused } from "./answer.ts";
import type { Call, CallOptions, Connection } from "./connection.ts";
import { errorOf } from "./errors.ts";
import type { LedgerHistory } from "./ledger-history.ts";
import type { OperationId } from "./hooks.ts";
import { operations, type Operations } from "./api-types.ts";

type QueryValue = string | number | readonly string[] | undefined;

export interface Input<Id extends OperationId> extends CallOptions {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, QueryValue>>;
  body?: Operations[Id]["body"];
  history?: LedgerHistory;
  /** See `Call`. */
  extraMs?: number;
  /** False for a call that would do its work twice with this body. By default, the operation decides. */
  isRepeatable?: boolean;
}

/** A repeated `addCell` fails because the cell exists, and a repeated `mintKey` makes a second key. */
const NOT_REPEATABLE: ReadonlySet<OperationId> = new Set(["addCell", "mintKey"]);

/** The ends of the paths of calls with a body that change nothing. */
const READ = /(lookup|digests|route|plan|classify|explain)$/;

/** Calls the operations of the API by their ids in the contract. */
export class Caller {
  readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  async call<Id extends OperationId>(
    operation: Id,
    input?: Input<Id>,
  ): Promise<Answer<Operations[Id]["answer"]>> {
    const call = this.callFor(operation, input);
    return "kind" in call ? call : this.connection.call(call);
  }

  /** What to send, or a refusal when a parameter cannot be a part of the URL. */
  callFor<Id extends OperationId>(
    operation: Id,
    {
      params = {},
      query = {},
      body,
      isRepeatable = !NOT_REPEATABLE.has(operation),
      ...options
    }: Input<Id> = {},
  ): Call | Refused {
    const { method, path, shape } = operations[operation];
    const unfit = Object.entries(params).find(([, value]) => !isSegment(value));
    if (unfit !== undefined)
      return invalid(unfit[0], "is a part of the URL: it must not be empty, made of dots, or ill-formed");
    const json = body === undefined ? undefined : JSON.stringify(body);
    return {
      ...options,
      operation,
      method,
      shape,
      isRepeatable,
      isRead: method === "GET" || READ.test(path),
      body: json,
      path: `${fillPath(path, params)}${queryOf(query)}`,
    };
  }
}

const fillPath = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));

/** `fetch` removes segments that are empty or made of dots. The URL would then name something else. */
const isSegment = (value: string): boolean =>
  value !== "" && value !== "." && value !== ".." && value.isWellFormed();

/** A refusal by this client. Nothing was sent. */
export const invalid = (field: string, detail: string): Refused => ({
  kind: "refused",
  status: 0,
  code: "INVALID_ARGUMENT",
  field,
  detail: `\`${field}\` ${detail}`,
  conflicts: [],
  retryable: false,
  outcomeKnown: true,
});

export const noCell = invalid(
  "cell",
  "is missing: give `cell` to createClient, or use `client.forCell(id)`, because this call is about one cell",
);

export function requireCell(cell: string | undefined): string {
  if (cell === undefined) throw errorOf(noCell);
  return cell;
}

/** Parameters for which "" means "from the beginning", as if they were left out. */
const BEGINNINGS: ReadonlySet<string> = new Set(["page_token", "source_id_gt"]);

function queryOf(query: Readonly<Record<string, QueryValue>>): string {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || (value === "" && BEGINNINGS.has(name))) continue;
    for (const each of Array.isArray(value) ? (value as readonly string[]) : [value])
      made.append(name, String(each));
  }
  return made.size === 0 ? "" : `?${made.toString()}`;
}
