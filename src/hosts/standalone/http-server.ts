import {
  createServer,
  STATUS_CODES,
  ServerResponse,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket, TlsOptions } from "node:tls";
import { MessageBudget } from "../grpc/message-budget.ts";
import { WRONG_HOST } from "../../coordinator/api/app.ts";
import type { HttpAnswer, Incoming } from "../../coordinator/api/incoming.ts";
import type { Failure } from "../../coordinator/api/problem.ts";
import { MAX_CONNECTIONS, announceClose, Connections } from "./connections.ts";
import { boundedBy, NodeRequest, sendAnswer } from "./node-request.ts";
import { isShared } from "../../coordinator/api/encoded-once.ts";

interface Application {
  /** Carries out a request, as the Worker does. */
  serve(incoming: Incoming): Promise<HttpAnswer>;
  /** Makes the answer to something that could not be parsed as a request. */
  refuse(failure: Failure): HttpAnswer;
}

interface Tls {
  cert: Buffer;
  key: Buffer;
  /** The authorities whose client certificates count. Clients may still have none. */
  clientCa?: Buffer;
}

/** What a caller may do before the application sees a request. */
interface ConnectionLimits {
  /** The longest time in which a request line and headers may arrive. */
  headersMs: number;
  /** How long an idle connection is kept. Clients with pools should close theirs earlier. */
  keepAliveMs: number;
  /** How often Node looks for connections that are too late. */
  checkMs: number;
  headerBytes: number;
  connections: number;
  /** How long a caller may take nothing of an answer. */
  unreadMs: number;
  /** Of all answers that callers have not taken. */
  unreadBytes: number;
}

export interface HttpOptions {
  host: string;
  /** 0 means any free port. */
  port: number;
  /** The longest time in which a body may arrive. */
  bodyReadMs: number;
  tls?: Tls;
  limits?: Partial<ConnectionLimits>;
}

const LIMITS: ConnectionLimits = {
  // As long as the local runtime of Workers waits.
  headersMs: 15_000,
  keepAliveMs: 75_000,
  checkMs: 1_000,
  headerBytes: 32_768,
  connections: MAX_CONNECTIONS,
  unreadMs: 60_000,
  unreadBytes: 128 * 1024 * 1024,
};
/** Node ends late requests. The application answers the limit of a body itself, so it comes first. */
const LATER_MS = 5_000;

/** The HTTP server. It translates between Node's requests and those of the Worker. */
export class HttpServer {
  readonly url: string;
  readonly #server: Server;
  readonly #connections: Connections;
  #dropped = 0;

  private constructor(server: Server, url: string, connections: Connections) {
    this.#server = server;
    this.url = url;
    this.#connections = connections;
    server.on("drop", () => (this.#dropped += 1));
  }

  /** Throws an `Error` that says what to change if the port cannot be used. */
  static async listen(
    application: Application,
    { host, port, bodyReadMs, tls, limits: given = {} }: HttpOptions,
  ): Promise<HttpServer> {
    const limits = { ...LIMITS, ...given };
    const certificates = new WeakMap<Socket, Buffer>();
    const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
      const failure = faultOf(incoming);
      const answered = await (failure === undefined
        ? application.serve(new NodeRequest(incoming, outgoing, certificates.get(incoming.socket)))
        : application.refuse(failure));
      // The caller is still sending the body. Another request would have to wait for the end of it.
      if (!incoming.complete) announceClose(outgoing);
      await sendAnswer(answered, outgoing);
    };
    const connections = new Connections();
    const listener: RequestListener = (incoming, outgoing) =>
      connections.began(incoming, outgoing, () => {
        // An answer that breaks off must not look like a whole one.
        answer(incoming, outgoing).catch(() => outgoing.destroy());
      });
    const options: ServerOptions = {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.headersMs + bodyReadMs + LATER_MS,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      maxHeaderSize: limits.headerBytes,
      IncomingMessage: boundedBy((socket) => connections.isFull(socket)),
      ServerResponse: countedIn(new MessageBudget(Infinity, limits.unreadBytes)),
      // The application refuses such a request, with a problem.
      requireHostHeader: false,
      // Node would take the first of two `Host` headers, and a proxy the last.
      joinDuplicateHeaders: true,
    };
    // Node's types lack the option of its TLS sockets that `httpAllowHalfOpen` sets for others.
    const tlsOptions = { ...options, ...tlsOptionsOf(tls), allowHalfOpen: true };
    const server =
      tls === undefined ? createServer(options, listener) : createTlsServer(tlsOptions, listener);
    // Node would take a connection for idle whose answer is made but not sent (`Connections.closeIdle`).
    server.closeIdleConnections = () => {};
    server.maxConnections = limits.connections;
    server.setTimeout(limits.unreadMs, (socket) => connections.silent(socket));
    // A caller may end its side of the connection once it has sent its requests, and gets the answers. Node
    // would carry the requests out and answer nothing.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on("connection", (socket) => connections.accepted(socket));
    // With TLS, requests come by another socket, which is there after the handshake.
    server.on(tls === undefined ? "connection" : "secureConnection", (socket) => connections.opened(socket));
    server.on("secureConnection", (socket: TLSSocket) => {
      const certificate = verifiedCertificate(socket);
      if (certificate !== undefined) certificates.set(socket, certificate);
    });
    const tell = (socket: Socket, failure: Failure): void =>
      connections.end(socket, textOf(application.refuse(failure)));
    // Node would answer with a status only, even if a request is running whose answer this would replace.
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      if (connections.fail(socket)) tell(socket, failureOf(error, limits));
    });
    // Node would close the connection without an answer. It doesn't look after the socket any more.
    server.on("connect", (_incoming, socket: Socket) => {
      socket.on("error", () => socket.destroy());
      if (connections.fail(socket)) tell(socket, NO_PROXY);
      else socket.destroy();
    });
    server.on("checkExpectation", listener);
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(host, port, error)));
      server.listen(port, host, resolve);
    });
    const { address, port: used } = server.address() as AddressInfo;
    const scheme = tls === undefined ? "http" : "https";
    return new HttpServer(server, `${scheme}://${addressOf(address, used)}`, connections);
  }

  /** Returns how many connections were closed because of their number since the last time. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** Accepts nothing more, and waits until all requests are answered, at most `maxMs`. */
  async close(maxMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const timer = setTimeout(() => this.#connections.closeAll(), maxMs);
    this.#connections.closeIdle();
    await closed;
    clearTimeout(timer);
  }
}

/** With authorities, TLS asks for a certificate and goes on without one, because most clients have a key. */
const tlsOptionsOf = (tls: Tls | undefined): TlsOptions => {
  const { clientCa, ...own } = tls ?? {};
  return clientCa === undefined
    ? own
    : { ...own, ca: clientCa, requestCert: true, rejectUnauthorized: false };
};

/**
 * Returns the client's certificate in DER if one of the authorities has signed it. A resumed session of a
 * client without a certificate is `authorized`, too.
 */
const verifiedCertificate = (socket: TLSSocket): Buffer | undefined =>
  socket.authorized ? socket.getPeerX509Certificate()?.raw : undefined;

const fault = (detail: string): Failure => ({ code: "INVALID_ARGUMENT", detail, field: "request" });

/** Checks what the parser leaves to the server. */
function faultOf({ httpVersion, httpVersionMajor, headers, url = "" }: IncomingMessage): Failure | undefined {
  // The parser also accepts HTTP/0.9 with headers, and HTTP/2.0 in the form of HTTP/1.
  if (httpVersionMajor !== 1) return fault("the request must be HTTP/1.1 or HTTP/1.0");
  // HTTP/1.0 needs no `Host`, and health checks of load balancers send none.
  if (httpVersion === "1.1" && !headers.host) return WRONG_HOST;
  if (/^[^/?#]+:\/\/[^/?#]*@/.test(url)) return fault("the URL of a request must not contain credentials");
  return undefined;
}

const NO_PROXY: Failure = { code: "INVALID_ARGUMENT", status: 405, detail: "this server is no proxy" };

/** Says what was wrong with something that could not be parsed as a request. */
function failureOf(
  { code = "" }: NodeJS.ErrnoException,
  { headerBytes, headersMs }: ConnectionLimits,
): Failure {
  if (code === "HPE_HEADER_OVERFLOW")
    return {
      code: "RESOURCE_EXHAUSTED",
      status: 431,
      detail: `the request line and headers are larger than ${headerBytes} bytes; send fewer or shorter ones`,
    };
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return {
      code: "RESOURCE_EXHAUSTED",
      status: 408,
      detail: `the request line and headers did not arrive within ${headersMs} ms; send them again`,
      retryAfterMs: 1_000,
    };
  return fault(`the request must be valid HTTP/1.1; the parser says ${code}`);
}

/** An answer as it is sent. */
function textOf({ status, headers, body }: HttpAnswer): string {
  const text = typeof body === "string" ? body : "";
  const all = { ...headers, "content-length": Buffer.byteLength(text), connection: "close" };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${text}`;
}

/** A host and a port, as they are in a URL. */
export const addressOf = (host: string, port: number): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`;

/** Says which setting is wrong: that of the host, or the given one of the port. */
export function listenError(
  host: string,
  port: number,
  { code, message }: NodeJS.ErrnoException,
  setting = "PORT",
): Error {
  if (code === "ENOTFOUND" || code === "EADDRNOTAVAIL" || code === "EAI_AGAIN")
    return new Error(`--host names ${host}, which is no address of this machine (${code})`);
  const problem = code === "EADDRINUSE" ? "is in use" : `cannot be used (${code ?? message})`;
  return new Error(`port ${port} ${problem}; set ${setting} to another port`);
}

/** Longer texts are encoded at once. Node would keep the text beside its bytes. */
const LONG_TEXT = 16_384;

/**
 * Makes the class of answers that count in `unread` until their callers have taken them. If they are too many
 * bytes, the connections with the oldest answers are closed. Documents that all answers share don't count, so
 * callers without a key can't bring that about.
 */
const countedIn = (unread: MessageBudget): typeof ServerResponse =>
  class CountedAnswer<Request extends IncomingMessage> extends ServerResponse<Request> {
    bytes = 0;
    #isFollowed = false;

    // `sendAnswer` calls `write` and `end` in no other way.
    override write(chunk: unknown): boolean {
      const isTaken = super.write(chunk);
      if (!isTaken && !isShared(chunk)) this.#count();
      return isTaken;
    }

    override end(chunk?: unknown): this {
      super.end(typeof chunk === "string" && chunk.length > LONG_TEXT ? Buffer.from(chunk) : chunk);
      if (chunk !== undefined && this.writableLength > 0) this.#count();
      return this;
    }

    evict(): void {
      this.destroy();
    }

    #count(): void {
      const leave = (): void => unread.remove(this);
      if (!this.#isFollowed) this.on("drain", leave).once("close", leave);
      this.#isFollowed = true;
      leave();
      this.bytes = 0;
      unread.add(this);
      unread.grow(this, this.writableLength);
    }
  };
