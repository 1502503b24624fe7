import type { Principal } from "../auth/principal.ts";
import type { Result } from "../kernel/refusal.ts";
import type { Env } from "../env.ts";
import type { WaitUntil } from "../runtime.ts";
import type { Trace } from "./trace.ts";

/** A request. Each runtime has an adapter that makes it, and that sends the `HttpAnswer`. */
export interface Incoming {
  readonly method: string;
  /** The path and query, as they were sent. */
  readonly target: string;
  /** Whether the client is known to use TLS. */
  readonly isTls: boolean;
  /** Whether there is a body. Only asked if the request doesn't declare the body's length. */
  readonly hasBody: boolean;
  /** Aborts when the caller closes the connection, if the runtime tells. It is made when it is asked for. */
  readonly closed: AbortSignal;
  /** The caller, if this process makes the request itself. The API trusts it like a verified key. */
  readonly principal?: Principal;
  /** The name is in lower case. Values of the same name are joined with commas. */
  header(name: string): string | undefined;
  /** All headers, for libraries that need such an object. */
  headers(): Headers;
  /**
   * Returns the body if all of it is there, or there is none, and else starts to read it. To be called once.
   * It never holds much more than `maxBytes` or a small body.
   */
  read(maxBytes: number): Result<Uint8Array> | Reading;
  /**
   * Returns the certificate in DER whose holder TLS has proved to be the sender. Headers say nothing here,
   * because everybody can send them. Undefined: there is none, or the runtime has not verified it.
   */
  certificate(): Result<Uint8Array | undefined>;
}

/** A body that is being read. `cancel` stops it, as far as that is possible. */
export interface Reading {
  bytes: Promise<Result<Uint8Array>>;
  cancel: () => void;
}

/** The names of the headers are in lower case. */
export interface HttpAnswer {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array | ReadableStream<Uint8Array> | null;
}

/** A request, and what it runs in. */
export interface RequestContext {
  incoming: Incoming;
  env: Env;
  trace: Trace;
  waitUntil: WaitUntil;
}
