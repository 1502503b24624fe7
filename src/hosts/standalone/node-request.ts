import { IncomingMessage, type ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";
import { ok, type Result } from "../../coordinator/kernel/refusal.ts";
import { CUT_SHORT, EMPTY, joined, tooLarge } from "../../coordinator/api/body.ts";
import type { HttpAnswer, Incoming, Reading } from "../../coordinator/api/incoming.ts";
import type { Socket } from "node:net";

/** The adapter for requests of Node's HTTP server. It makes an object of the web only if asked for it. */
export class NodeRequest implements Incoming {
  readonly method: string;
  readonly target: string;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;
  readonly #certificate: Uint8Array | undefined;
  #closed: AbortController | undefined;

  constructor(incoming: IncomingMessage, outgoing: ServerResponse, certificate: Uint8Array | undefined) {
    this.method = incoming.method ?? "";
    this.target = targetOf(incoming.url ?? "");
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.#certificate = certificate;
  }

  get isTls(): boolean {
    return this.#incoming.socket instanceof TLSSocket;
  }

  get hasBody(): boolean {
    return (this.header("content-length") ?? this.header("transfer-encoding") ?? "0") !== "0";
  }

  get closed(): AbortSignal {
    if (this.#closed === undefined) {
      const controller = new AbortController();
      this.#closed = controller;
      const outgoing = this.#outgoing;
      const close = (): void => {
        if (!outgoing.writableFinished) controller.abort();
      };
      if (outgoing.closed) close();
      else outgoing.once("close", close);
    }
    return this.#closed.signal;
  }

  header(name: string): string | undefined {
    const value = this.#incoming.headers[name];
    return typeof value === "string" ? value : undefined;
  }

  headers(): Headers {
    const headers = new Headers();
    const { rawHeaders } = this.#incoming;
    for (let index = 0; index < rawHeaders.length; index += 2)
      headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
    return headers;
  }

  read(maxBytes: number): Result<Uint8Array> | Reading {
    const { method } = this;
    if (method === "GET" || method === "HEAD" || !this.hasBody) return EMPTY;
    const incoming = this.#incoming;
    if (incoming.destroyed) return CUT_SHORT;
    // A small body arrives with the headers.
    if (incoming.complete)
      return incoming.readableLength > maxBytes
        ? tooLarge(maxBytes)
        : ok((incoming.read() as Buffer | null) ?? new Uint8Array());
    const { promise: bytes, resolve } = Promise.withResolvers<Result<Uint8Array>>();
    const chunks: Buffer[] = [];
    let length = 0;
    const end = (result: Result<Uint8Array>): void => {
      // What follows is read and dropped, because the caller must get the answer.
      incoming.off("data", take);
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > maxBytes) end(tooLarge(maxBytes));
      else chunks.push(chunk);
    };
    const cut = (): void => end(CUT_SHORT);
    incoming
      .on("data", take)
      .once("end", () => end(ok(joined(chunks, length))))
      .once("error", cut)
      .once("close", cut);
    return { bytes, cancel: cut };
  }

  certificate(): Result<Uint8Array | undefined> {
    return ok(this.#certificate);
  }
}

/** A whole URL in place of a path names the same resource. */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

const targetOf = (sent: string): string =>
  /^\/[\x21-\x7e]*$/.test(sent)
    ? sent
    : (sent.replace(ORIGIN, "") || "/").replaceAll(/[^\x21-\x7e]/g, percentEncoded);

/** The parser makes a character of each byte. */
const percentEncoded = (byte: string): string => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;

/** Sends an answer. It resolves when all of it is handed over. */
export async function sendAnswer(
  { status, headers, body }: HttpAnswer,
  outgoing: ServerResponse,
): Promise<void> {
  if (outgoing.destroyed) return body instanceof ReadableStream ? body.cancel() : undefined;
  const all: string[] = [];
  for (const name in headers) all.push(name, headers[name] ?? "");
  if (body instanceof ReadableStream) {
    outgoing.writeHead(status, all).flushHeaders();
    return sendStream(body, outgoing);
  }
  if (body !== null && headers["content-length"] === undefined)
    all.push("content-length", String(Buffer.byteLength(body)));
  outgoing.writeHead(status, all);
  if (body === null) outgoing.end();
  else outgoing.end(body);
}

const NOTHING = (): void => {};

/** Sends what a stream has as the caller takes it, and cancels it when the caller leaves. */
async function sendStream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  const reader = body.getReader();
  let resume = NOTHING;
  outgoing.on("drain", () => resume());
  outgoing.once("close", () => {
    resume();
    void reader.cancel().catch(() => {});
  });
  for (;;) {
    const { done, value } = await reader.read();
    if (outgoing.closed) return;
    if (done) break;
    if (!outgoing.write(value)) await new Promise<void>((resolve) => (resume = resolve));
  }
  outgoing.end();
}

interface Parsed extends IncomingMessage {
  /** Tells Node's parser that what follows is no HTTP. */
  upgrade: boolean;
  methodOfRequest: string | null;
}

/**
 * Makes the class of requests of a server. Node parses all requests that have arrived in one chunk of 64 KiB,
 * which are thousands, before it can pause a connection. So the first request that is too many becomes a
 * CONNECT, because the parser reads nothing that follows one.
 */
export function boundedBy(isFull: (socket: Socket) => boolean): typeof IncomingMessage {
  class BoundedRequest extends IncomingMessage {}
  Object.defineProperty(BoundedRequest.prototype, "method", {
    get(this: Parsed): string | null {
      return this.methodOfRequest;
    },
    // The constructor sets null, and the parser sets the method once the headers are complete.
    set(this: Parsed, method: string | null) {
      const isTooMany = method !== null && isFull(this.socket);
      if (isTooMany) this.upgrade = true;
      this.methodOfRequest = isTooMany ? "CONNECT" : method;
    },
  });
  return BoundedRequest;
}
