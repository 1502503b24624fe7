import type { Answer } from "./answer.ts";
import type { Call, CallOptions, Connection } from "./connection.ts";
import { InvalidArgumentError } from "./errors.ts";
import type { OperationId } from "./operation.ts";
import { operations, type Operations } from "./api-types.ts";

type QueryValue = string | number | readonly string[] | undefined;

export interface Input<Id extends OperationId> extends CallOptions {
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, QueryValue>>;
  body?: Operations[Id]["body"];
}

/** Sending them again does again what they do: a cell that exists, a second key. */
const NOT_REPEATABLE: ReadonlySet<OperationId> = new Set(["addCell", "mintKey"]);

/** Every operation of the API, by its id in the contract. */
export class Caller {
  readonly connection: Connection;

  constructor(connection: Connection) {
    this.connection = connection;
  }

  async call<Id extends OperationId>(
    operation: Id,
    input?: Input<Id>,
  ): Promise<Answer<Operations[Id]["answer"]>> {
    return this.connection.call(this.callFor(operation, input));
  }

  /** As the connection takes it. */
  callFor<Id extends OperationId>(
    operation: Id,
    { params = {}, query = {}, body, ...options }: Input<Id> = {},
  ): Call {
    const { method, path, shape } = operations[operation];
    const isRepeatable = !NOT_REPEATABLE.has(operation);
    const json = body === undefined ? undefined : JSON.stringify(body);
    return {
      ...options,
      operation,
      method,
      shape,
      isRepeatable,
      body: json,
      path: `${fillPath(path, params)}${queryOf(query)}`,
    };
  }
}

const fillPath = (path: string, params: Readonly<Record<string, string>>): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => segmentOf(name, params[name] ?? ""));

/** `fetch` would leave out a segment that is empty or made of dots, and so ask for something else: a record that is there would look free. */
function segmentOf(name: string, value: string): string {
  if (value !== "" && value !== "." && value !== ".." && value.isWellFormed())
    return encodeURIComponent(value);
  throw new InvalidArgumentError(
    `\`${name}\` cannot be a part of a URL: it is empty, made of dots, or ill-formed`,
    {
      code: "INVALID_ARGUMENT",
      field: name,
    },
  );
}

/** Empty: from the beginning. */
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
