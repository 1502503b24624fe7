import { ok, type Result } from "../kernel/refusal.ts";
import type { Env } from "../env.ts";
import type { WaitUntil } from "../runtime.ts";
import { serve } from "./app.ts";
import { EMPTY, readChunks, tooLarge } from "./body.ts";
import { certificateOf, type TlsClientAuth } from "./authenticate.ts";
import type { HttpAnswer, Incoming, Reading } from "./incoming.ts";

/** Bodies up to this size are read in one call. Longer ones are counted while they are read. */
const SMALL_BYTES = 65_536;

/** The adapter for runtimes whose requests are those of the web. */
export class WebRequest implements Incoming {
  readonly method: string;
  readonly target: string;
  readonly #request: Request;
  readonly #certificate: Uint8Array | undefined;

  constructor(request: Request, certificate: Uint8Array | undefined) {
    const { method, url } = request;
    this.method = method;
    this.target = url.slice(url.indexOf("/", url.indexOf("://") + 3));
    this.#request = request;
    this.#certificate = certificate;
  }

  get isTls(): boolean {
    return this.#request.url.startsWith("https:");
  }

  get hasBody(): boolean {
    return this.#request.body !== null;
  }

  get closed(): AbortSignal {
    return this.#request.signal;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers.get(name);
    if (value !== null) return value;
    // A request that was made in this process has none.
    return name === "host" ? new URL(this.#request.url).host : undefined;
  }

  headers(): Headers {
    return this.#request.headers;
  }

  read(maxBytes: number): Result<Uint8Array> | Reading {
    const declared = this.#request.headers.get("content-length");
    if (declared === "0") return EMPTY;
    if (declared === null || !(Number(declared) <= SMALL_BYTES)) {
      const { body } = this.#request;
      return body === null ? EMPTY : readChunks(body, maxBytes);
    }
    // Nearly all bodies are small: reading them in one call is faster than by chunk. HTTP ends a body at its
    // declared length, so it cannot be longer.
    return { bytes: readAtOnce(this.#request, maxBytes), cancel: () => {} };
  }

  certificate(): Result<Uint8Array | undefined> {
    if (this.#certificate !== undefined) return ok(this.#certificate);
    // The runtime of Workers sets `cf`, or a Worker with a service binding to this one. That one can say
    // anything.
    const { cf } = this.#request as { cf?: { tlsClientAuth?: TlsClientAuth } };
    return certificateOf(cf?.tlsClientAuth);
  }
}

async function readAtOnce(request: Request, maxBytes: number): Promise<Result<Uint8Array>> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  return bytes.length > maxBytes ? tooLarge(maxBytes) : ok(bytes);
}

export const responseOf = ({ status, headers, body }: HttpAnswer): Response =>
  new Response(body as Exclude<HttpAnswer["body"], Uint8Array> | Uint8Array<ArrayBuffer>, {
    status,
    headers,
  });

/**
 * Has a request of the web carried out, and returns the answer.
 *
 * @param certificate that of the client, in DER, if TLS has verified it in this process
 */
export const sendRequest = async (
  request: Request,
  certificate: Uint8Array | undefined,
  carryOut: (incoming: Incoming) => Promise<HttpAnswer>,
): Promise<Response> => responseOf(await carryOut(new WebRequest(request, certificate)));

/** Serves a request of the runtime of Workers. */
export const serveRequest = (
  request: Request,
  env: Env,
  context: { waitUntil: WaitUntil },
): Promise<Response> =>
  sendRequest(request, undefined, (incoming) => serve(incoming, env, (work) => context.waitUntil(work)));
