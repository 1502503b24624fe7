import { positionCookie, type Positions } from "../positions.ts";
import { cookieOf, REDIRECT_COOKIE } from "./headers.ts";

/** How much of a request's body is read and thrown away after an early answer, and for how long. */
export interface DiscardLimits {
  readonly bytes: number;
  readonly ms: number;
}

/** The size of a read, where the runtime lets the reader choose it. */
const READ_BYTES = 65_536;

interface Pipe {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}

type PipeClass = new (lengthBytes?: number) => Pipe;

/** These classes of workerd are faster than a `TransformStream`, and the first one keeps `Content-Length`. */
const runtime = globalThis as unknown as Partial<
  Record<"FixedLengthStream" | "IdentityTransformStream", PipeClass>
>;

/**
 * The body of a request on its way to a cell, one chunk at a time. A cell may answer before it has read the
 * body. Some servers close the connection if they answer while a client still sends, and the client then
 * never sees the answer. So the rest of the body can be read and thrown away first.
 */
export class Upload {
  /** The body for the cell. */
  readonly body: ReadableStream<Uint8Array>;
  /** The length of the whole body, if the client has said it. */
  readonly lengthBytes: number | null;
  /** The client has broken off its body. The request to the cell then fails, too. */
  isBroken = false;
  readonly #limits: DiscardLimits;
  readonly #ended: Promise<void>;
  #isSending = true;
  /** Ends the wait for a write that the cell does not take. */
  #endWrite: (() => void) | undefined;
  #isEnded = false;
  #discardedBytes = 0;

  constructor(source: ReadableStream<Uint8Array>, lengthBytes: number | null, limits: DiscardLimits) {
    this.lengthBytes = lengthBytes;
    this.#limits = limits;
    const { readable, writable } = pipeFor(lengthBytes);
    this.body = readable;
    this.#ended = this.#pump(readerOf(source), writable.getWriter()).then(
      () => void (this.#isEnded = true),
      // The client went away: there is nothing left to read.
      () => void (this.#isEnded = true),
    );
  }

  /** Stops sending to the cell, and reads the rest of the body within the limits. */
  async discard(): Promise<void> {
    if (this.#isEnded) return;
    this.#isSending = false;
    this.#endWrite?.();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((over) => {
      timer = setTimeout(over, this.#limits.ms);
    });
    await Promise.race([this.#ended, late]);
    // A pump that still waits ends with the next chunk.
    this.#discardedBytes = Infinity;
    clearTimeout(timer);
  }

  async #pump(reader: Reader, writer: WritableStreamDefaultWriter<Uint8Array>): Promise<void> {
    // A cell that does not want the rest makes every write fail. The rest is then read for nobody.
    const stop = (): void => void (this.#isSending = false);
    writer.closed.catch(stop);
    try {
      for (;;) {
        const chunk = await reader.read();
        if (chunk === null) break;
        if (this.#isSending) {
          await new Promise<void>((next) => {
            this.#endWrite = next;
            writer.write(chunk).catch(stop).finally(next);
          });
          // Without an end of the sending, the write is over.
          if (this.#isSending && canRecycle) reader.recycle(chunk);
        } else if ((this.#discardedBytes += chunk.byteLength) > this.#limits.bytes)
          return await reader.cancel();
      }
    } catch (error) {
      this.isBroken = true;
      await writer.abort(error).catch(stop);
      throw error;
    }
    if (this.#isSending) await writer.close().catch(stop);
  }
}

/** When a write to a pipe of workerd is over, the chunk was sent. Other pipes may still have it. */
const canRecycle = runtime.IdentityTransformStream !== undefined;

interface Reader {
  /** Returns null at the end. */
  read(): Promise<Uint8Array | null>;
  /** Uses the memory of a chunk again, so that large bodies leave no garbage. */
  recycle(chunk: Uint8Array): void;
  cancel(): Promise<void>;
}

/** Reads in large pieces where the stream can, because each read of a Worker costs time. */
function readerOf(source: ReadableStream<Uint8Array>): Reader {
  try {
    const reader = source.getReader({ mode: "byob" });
    let spare: ArrayBuffer | undefined;
    return {
      read: async () => {
        const buffer = spare ?? new ArrayBuffer(READ_BYTES);
        spare = undefined;
        const { done, value } = await reader.read(new Uint8Array(buffer));
        return done ? null : value;
      },
      recycle: (chunk) => {
        spare = chunk.buffer as ArrayBuffer;
      },
      cancel: () => reader.cancel(),
    };
  } catch {
    // Not a stream of bytes.
    const reader = source.getReader();
    return {
      read: async () => {
        const { done, value } = await reader.read();
        return done ? null : value;
      },
      recycle: () => {},
      cancel: () => reader.cancel(),
    };
  }
}

function pipeFor(lengthBytes: number | null): Pipe {
  const { FixedLengthStream, IdentityTransformStream } = runtime;
  if (lengthBytes !== null && FixedLengthStream !== undefined) return new FixedLengthStream(lengthBytes);
  if (IdentityTransformStream !== undefined) return new IdentityTransformStream();
  return new TransformStream<Uint8Array, Uint8Array>();
}

/**
 * Returns whether a client will come back with a cookie that it gets now. Without the cookie, another copy of
 * the router could send it to the wrong cell again, and again. Clients that send cookies or are browsers keep
 * cookies, except for requests from other sites, on which `SameSite=Lax` leaves them out. A client that was
 * sent back already is not sent back again.
 */
export function canSendAgain({ headers }: Request): boolean {
  const cookies = headers.get("cookie");
  if (cookieOf(cookies, REDIRECT_COOKIE) !== null || headers.get("sec-fetch-site") === "cross-site")
    return false;
  return cookies !== null || headers.has("sec-fetch-site");
}

const RULE_PREFIX = "rule:";

/** Returns the rule whose cell has refused this request before, according to the client's cookies. */
export function wrongRuleOf(cookies: string | null): string | null {
  const value = cookieOf(cookies, REDIRECT_COOKIE);
  if (value === null || !value.startsWith(RULE_PREFIX)) return null;
  try {
    return decodeURIComponent(value.slice(RULE_PREFIX.length));
  } catch {
    return null;
  }
}

/**
 * Returns a 307 to the same URL, with the positions in a cookie for as long as a router may answer from
 * before them.
 *
 * @param wrongRule the rule that named the wrong cell. Null if a name did.
 */
export function sendAgain(
  request: Request,
  positions: Positions,
  wrongRule: string | null,
  boundMs: number,
): Response {
  const maxAgeS = Math.max(1, Math.ceil(boundMs / 1_000));
  const headers = new Headers({ location: sameUrl(request.url), "cache-control": "no-store" });
  if (positions.size > 0) headers.append("set-cookie", positionCookie(positions, maxAgeS));
  const attributes = `Max-Age=${maxAgeS}; Path=/; HttpOnly; Secure; SameSite=Lax`;
  const value = wrongRule === null ? "name" : `${RULE_PREFIX}${encodeURIComponent(wrongRule)}`;
  headers.append("set-cookie", `${REDIRECT_COOKIE}=${value}; ${attributes}`);
  return new Response(null, { status: 307, headers });
}

/**
 * The URL without its origin, because a router behind another proxy does not know the origin that the client
 * used. A path that begins with two slashes would otherwise name another host.
 */
function sameUrl(url: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname.startsWith("//") ? "/." : ""}${pathname}${search}`;
}
