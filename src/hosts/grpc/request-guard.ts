/** Bounds requests until a handler gets them, and answers until clients have taken them (W8). */
import {
  ServerInterceptingCall,
  status,
  type Metadata,
  type ServerInterceptor,
  type ServerListener,
} from "@grpc/grpc-js";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { GRPC_TIMEOUT, GRPC_TIMEOUT_FORM, grpcTimeoutMs } from "../../coordinator/wire/grpc-timeout.ts";
import { faultText, type MessageFault } from "../../coordinator/wire/message-fault.ts";
import { MAX_KEYLESS_BYTES, MAX_MESSAGE_BYTES, metadataBytes, type CallLimits } from "./call-limits.ts";
import { MessageBudget, type Incomplete } from "./message-budget.ts";
import { FaultyMessage } from "./raw-service.ts";

type Call = Parameters<ServerInterceptor>[1];

interface Ending {
  code: status;
  details: string;
}

/** The memory that a chunk or a message takes up in addition to its bytes. */
const CHUNK_BYTES = 512;
/** A byte of deflate becomes at most so many bytes. */
const MAX_RATIO = 1_032;
/** The memory of zlib for one message. */
const INFLATE_BYTES = 64 * 1024;
/** The longest deadline of the library, some 24 days. */
const MAX_DEADLINE_S = 2_147_483;
/** A decompression goes on after its call has ended, but for no longer than this. */
const INFLATE_MS = 10_000;

/** A message that its client has not taken. */
class UnreadMessage implements Incomplete {
  bytes = 0;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream;
  }

  evict(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}

/** A call whose answers count in `unread` until its client has taken them. */
class AnsweringCall extends ServerInterceptingCall {
  readonly #stream: ServerHttp2Stream;
  readonly #unread: MessageBudget;

  constructor(call: Call, listener: ServerListener, unread: MessageBudget) {
    super(call, { start: (next) => next(listener) });
    this.#stream = streamOf(call);
    this.#unread = unread;
  }

  override sendMessage(message: unknown, taken: () => void): void {
    // A client that has cancelled the call takes nothing, and nobody would say so.
    if (this.#stream.destroyed || this.#stream.closed) return super.sendMessage(message, taken);
    const before = this.#stream.writableLength;
    const unread = new UnreadMessage(this.#stream);
    const leave = (): void => {
      this.#stream.off("close", leave);
      this.#unread.remove(unread);
    };
    this.#stream.on("close", leave);
    super.sendMessage(message, () => {
      leave();
      taken();
    });
    this.#unread.add(unread);
    this.#unread.grow(unread, this.#stream.writableLength - before);
  }
}

export class RequestGuard {
  /** For calls that go to the coordinator. */
  readonly messages: MessageBudget;
  readonly #keyless: MessageBudget;
  readonly #inflating: MessageBudget;
  readonly #unread: MessageBudget;
  /** Streams whose `grpc-timeout` is malformed. */
  readonly #malformedDeadline = new WeakSet<ServerHttp2Stream>();
  readonly #readMs: number;
  readonly #needsKey: (path: string) => boolean;

  /** @param needsKey whether calls of a path need a credential */
  constructor(limits: CallLimits, needsKey: (path: string) => boolean) {
    this.messages = new MessageBudget(limits.calls, limits.bytes);
    this.#keyless = new MessageBudget(limits.keylessCalls, limits.keylessBytes);
    this.#inflating = new MessageBudget(0, limits.inflatingBytes);
    this.#unread = new MessageBudget(limits.calls, limits.bytes);
    this.#readMs = limits.readMs;
    this.#needsKey = needsKey;
  }

  /**
   * Reads the deadline of a request before the library does: it takes the last 8 digits of a longer number,
   * and its own number has only 31 bits (W4).
   */
  readonly readDeadline = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void => {
    const sent = headers[GRPC_TIMEOUT];
    if (sent === undefined) return;
    const timeoutMs = grpcTimeoutMs(String(sent));
    if (timeoutMs === undefined) {
      delete headers[GRPC_TIMEOUT];
      this.#malformedDeadline.add(stream);
    } else if (timeoutMs > MAX_DEADLINE_S * 1_000) headers[GRPC_TIMEOUT] = `${MAX_DEADLINE_S}S`;
  };

  readonly interceptor: ServerInterceptor = ({ path, requestStream }, call) => {
    const needsKey = this.#needsKey(path);
    const request = new GuardedRequest(call, {
      budget: needsKey ? this.messages : this.#keyless,
      inflating: this.#inflating,
      maxBytes: needsKey ? MAX_MESSAGE_BYTES : MAX_KEYLESS_BYTES,
      // A client of reflection may keep its stream open between requests.
      readMs: requestStream ? undefined : this.#readMs,
    });
    const listener: ServerListener = {
      onReceiveMetadata: (metadata, next) => {
        if (needsKey && !hasCredential(call, metadata)) return request.end(KEY_MISSING);
        if (this.#malformedDeadline.has(streamOf(call))) return request.end(MALFORMED_DEADLINE);
        request.start(metadataBytes(metadata));
        next(metadata);
      },
      onReceiveMessage: (message, next) => {
        request.delivered();
        if (message instanceof FaultyMessage) request.end(unreadable(message.fault));
        else next(message);
      },
      onReceiveHalfClose: (next) => {
        request.complete();
        next();
      },
      onCancel: () => request.ended(),
    };
    return new AnsweringCall(call, listener, this.#unread);
  };
}

/** Returns whether there is a credential for the coordinator to verify. It may be invalid. */
function hasCredential(call: Call, metadata: Metadata): boolean {
  const [authorization] = metadata.get("authorization");
  if (authorization === undefined) return call.getAuthContext().sslPeerCertificate !== undefined;
  return /^bearer +\S+$/i.test(authorization.toString().trim());
}

const unreadable = (fault: MessageFault): Ending => ({
  code: status.INVALID_ARGUMENT,
  details: faultText(fault),
});

const MALFORMED_DEADLINE: Ending = {
  code: status.INVALID_ARGUMENT,
  details: `\`${GRPC_TIMEOUT}\` ${GRPC_TIMEOUT_FORM}`,
};

const KEY_MISSING: Ending = {
  code: status.UNAUTHENTICATED,
  details: "the key is missing; send `authorization: Bearer <key>`",
};

const EVICTED: Ending = {
  code: status.RESOURCE_EXHAUSTED,
  details: "the request was incomplete when others needed the memory; nothing was done, so repeat it",
};

const INFLATED: Ending = {
  code: status.RESOURCE_EXHAUSTED,
  details: "too many compressed messages are being read; send it uncompressed, or repeat the call",
};

const SECOND_MESSAGE: Ending = { code: status.UNIMPLEMENTED, details: "the request has two messages" };

const tooLarge = (maxBytes: number): Ending => ({
  code: status.RESOURCE_EXHAUSTED,
  details: `the message is larger than ${maxBytes} bytes`,
});

const tooSlow = (readMs: number): Ending => ({
  code: status.RESOURCE_EXHAUSTED,
  details: `the request did not arrive within ${readMs} ms; nothing was done, so send it again`,
});

/** A message that has arrived, but has not been delivered to a handler. */
interface Waiting {
  bytes: number;
  /** If it is being decompressed. */
  release: (() => void) | undefined;
}

interface Bounds {
  budget: MessageBudget;
  inflating: MessageBudget;
  /** Of one message, before and after decompression. */
  maxBytes: number;
  /** Undefined: the client may send any number of messages in any time. */
  readMs: number | undefined;
}

/** A request that has not arrived as a whole. */
class GuardedRequest implements Incomplete {
  bytes = 0;
  readonly #call: Call;
  readonly #bounds: Bounds;
  readonly #stream: ServerHttp2Stream;
  readonly #frames = new FrameReader();
  readonly #waiting: Waiting[] = [];
  /** How many chunks have arrived since the last whole message. */
  #chunks = 0;
  #isComplete = false;
  #hasEnded = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(call: Call, bounds: Bounds) {
    this.#call = call;
    this.#bounds = bounds;
    this.#stream = streamOf(call);
  }

  start(headerBytes: number): void {
    const { budget, readMs } = this.#bounds;
    if (readMs !== undefined) this.#timer = setTimeout(() => this.end(tooSlow(readMs)), readMs);
    // The library must not see a chunk that ends the call, because it would begin to decompress it.
    this.#stream.prependListener("data", (chunk: Buffer) => this.#read(chunk));
    budget.add(this);
    budget.grow(this, headerBytes);
  }

  evict(): void {
    this.end(EVICTED);
  }

  /** A handler has the first message that waits. */
  delivered(): void {
    const first = this.#waiting.shift();
    first?.release?.();
    // A single message counts until the request is complete.
    if (first !== undefined && this.#isStream) this.#bounds.budget.shrink(this, first.bytes);
  }

  /** Whoever handles the call counts the message from now on. */
  complete(): void {
    this.#isComplete = true;
    this.#leave();
  }

  /** The library has sent a status, or the stream is closed. */
  ended(): void {
    this.#leave();
    if (!this.#isComplete) this.#close();
  }

  end(ending: Ending): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    // A client that doesn't read would keep back a status that follows messages.
    if (this.#stream.headersSent) this.#stream.close(constants.NGHTTP2_CANCEL);
    else this.#call.sendStatus(ending);
    this.#leave();
    this.#close();
  }

  get #isStream(): boolean {
    return this.#bounds.readMs === undefined;
  }

  #read(chunk: Buffer): void {
    if (this.#isComplete || this.#hasEnded) return;
    const { budget, maxBytes } = this.#bounds;
    const whole = this.#frames.read(chunk);
    if (this.#frames.bytes > maxBytes) return this.end(tooLarge(maxBytes));
    if (this.#frames.begun > 1 && !this.#isStream) return this.end(SECOND_MESSAGE);
    this.#chunks += 1;
    for (const frame of whole) if (!this.#wait(frame)) return this.end(INFLATED);
    budget.grow(this, chunk.length + CHUNK_BYTES * (1 + whole.length));
  }

  /** Returns false if the message may not be decompressed. */
  #wait({ bytes, isCompressed }: Frame): boolean {
    const waiting: Waiting = {
      bytes: HEADER_BYTES + bytes + CHUNK_BYTES * (1 + this.#chunks),
      release: undefined,
    };
    this.#chunks = 0;
    this.#waiting.push(waiting);
    if (!isCompressed) return true;
    const inflated = INFLATE_BYTES + Math.min(MAX_MESSAGE_BYTES, bytes * MAX_RATIO);
    waiting.release = this.#bounds.inflating.hold(inflated);
    return waiting.release !== undefined;
  }

  #leave(): void {
    clearTimeout(this.#timer);
    this.#bounds.budget.remove(this);
    for (const { release } of this.#waiting.splice(0))
      if (release !== undefined) setTimeout(release, INFLATE_MS).unref();
  }

  /** Lets go of what has arrived. A status alone leaves it in memory until the client ends its request. */
  #close(): void {
    // It also resets the stream, so the client sends no more. After `close`, it would not.
    this.#stream.destroy();
  }
}

/** The library has no other way to see the bytes of a message that is incomplete, or to let go of them. */
const streamOf = (call: Call): ServerHttp2Stream => (call as unknown as { stream: ServerHttp2Stream }).stream;

/** A message of a stream that has arrived as a whole. */
export interface Frame {
  bytes: number;
  isCompressed: boolean;
}

const HEADER_BYTES = 5;

/** Follows the messages of a stream: each has a flag, its length in 4 bytes, and its content. */
export class FrameReader {
  /** How many messages have begun. */
  begun = 0;
  /** How long the last of them is, or as much of its length as has arrived. */
  bytes = 0;
  #headerBytes = 0;
  #isCompressed = false;
  #missing = 0;

  /** Returns the messages that end in this chunk. */
  read(chunk: Uint8Array): Frame[] {
    const whole: Frame[] = [];
    for (let at = 0; at < chunk.length;) {
      if (this.#headerBytes < HEADER_BYTES) {
        this.#readHeader(chunk[at] ?? 0);
        at += 1;
      } else {
        const taken = Math.min(this.#missing, chunk.length - at);
        this.#missing -= taken;
        at += taken;
      }
      if (this.#headerBytes < HEADER_BYTES || this.#missing > 0) continue;
      whole.push({ bytes: this.bytes, isCompressed: this.#isCompressed });
      this.#headerBytes = 0;
    }
    return whole;
  }

  #readHeader(byte: number): void {
    if (this.#headerBytes === 0) {
      this.begun += 1;
      this.#isCompressed = byte === 1;
      this.bytes = 0;
    } else {
      this.bytes = this.bytes * 256 + byte;
      this.#missing = this.bytes;
    }
    this.#headerBytes += 1;
  }
}
