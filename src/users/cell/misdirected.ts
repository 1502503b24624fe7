/** The headers of a request: those of the Fetch API, or the plain object of `node:http`. */
export type RequestHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface MisdirectedOptions {
  /**
   * The epoch at which this cell gave the name up, if its database still has it. Routers pass it to their
   * hooks.
   */
  epoch?: number | undefined;
}

/** The parts of an answer, for servers without the `Response` of the Fetch API. */
export interface MisdirectedAnswer {
  readonly status: 421;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const BODY = JSON.stringify({
  type: "about:blank",
  title: "Misdirected Request",
  status: 421,
  detail: "this cell does not have the name",
});

/**
 * Returns the answer to a request about a name that is not in the cell's own database. It tells a router that
 * its answer was old: the router asks the coordinator again, and finds the right cell. Call it after the cell
 * has looked into its own database, never because of what the router says.
 *
 * @returns undefined if no router sent the request. Nobody would understand a 421, so answer 404.
 * @throws A `TypeError` if `epoch` is not a whole number.
 * @example
 * ```ts
 * import { createServer } from "node:http";
 * import { misdirected } from "leasehold/cell";
 *
 * declare function findUser(path: string): Promise<string | undefined>;
 *
 * createServer(async (request, response) => {
 *   const user = await findUser(request.url ?? "/");
 *   if (user !== undefined) return void response.end(user);
 *   const wrongCell = misdirected(request.headers);
 *   if (wrongCell === undefined) return void response.writeHead(404).end();
 *   response.writeHead(wrongCell.status, wrongCell.headers).end(wrongCell.body);
 * });
 * ```
 */
export function misdirected(
  headers: RequestHeaders,
  { epoch }: MisdirectedOptions = {},
): MisdirectedAnswer | undefined {
  if (epoch !== undefined && !(Number.isSafeInteger(epoch) && epoch >= 0))
    throw new TypeError(`\`epoch\` must be a whole number that is at least 0; got ${String(epoch)}`);
  // A router replaces this header, so a client behind a router cannot leave it out.
  const cell = headers instanceof Headers ? headers.get("leasehold-cell") : headers["leasehold-cell"];
  if (cell === null || cell === undefined) return undefined;
  return {
    status: 421,
    headers: {
      "content-type": "application/problem+json",
      "cache-control": "no-store",
      ...(epoch === undefined ? {} : { "leasehold-epoch": String(epoch) }),
    },
    body: BODY,
  };
}

/**
 * The same as `misdirected`, as a `Response` of the Fetch API.
 *
 * @returns undefined if no router sent the request. Nobody would understand a 421, so answer 404.
 * @throws A `TypeError` if `epoch` is not a whole number.
 * @example
 * ```ts
 * import { misdirectedResponse } from "leasehold/cell";
 *
 * declare function findUser(path: string): Promise<string | undefined>;
 *
 * export async function answer(request: Request): Promise<Response> {
 *   const user = await findUser(new URL(request.url).pathname);
 *   if (user !== undefined) return new Response(user);
 *   return misdirectedResponse(request.headers) ?? new Response("not found", { status: 404 });
 * }
 * ```
 */
export function misdirectedResponse(
  headers: RequestHeaders,
  options: MisdirectedOptions = {},
): Response | undefined {
  const answer = misdirected(headers, options);
  return answer === undefined ? undefined : new Response(answer.body, answer);
}
