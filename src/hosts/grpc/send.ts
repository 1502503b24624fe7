/** How a request gets to the coordinator: over HTTP, or in the same process. */

export interface WebRequest {
  method: "GET" | "POST";
  path: string;
  /** Names are in lower case. */
  headers: Readonly<Record<string, string>>;
  body?: Buffer<ArrayBuffer>;
  /** A client certificate in DER, verified by TLS. */
  certificate?: Buffer | undefined;
  /** Aborts when nobody waits for the answer any more. */
  signal?: AbortSignal;
}

export interface WebResponse {
  status: number;
  /** Names are in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined: it is larger than `MAX_ANSWER_BYTES`. */
  body: Buffer | undefined;
}

/** Rejects if there is no whole answer: with `NotConnected` if the request was not sent. */
export type Send = (request: WebRequest) => Promise<WebResponse>;

/** There is no connection to the coordinator, so the request had no effect. */
export class NotConnected extends Error {}

/** Clients accept messages of 4 MiB by default, and GitLab's of 10 MiB. */
export const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
