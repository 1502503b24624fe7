import { getRequestListener } from "@hono/node-server";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { MAX_CONNECTIONS } from "./connection-limit.ts";

/** Carries out a request, as the Worker does. */
type Dispatch = (request: Request) => Promise<Response>;

interface Tls {
  cert: Buffer;
  key: Buffer;
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
    dispatch: Dispatch,
    { host, port, bodyReadMs, tls, limits: given = {} }: HttpOptions,
  ): Promise<HttpServer> {
    const limits = { ...LIMITS, ...given };
    const answer = getRequestListener(
      (request, { incoming }) => dispatch(asSent(request, incoming as IncomingMessage)),
      { errorHandler: (error) => dispatch(refusedRequest(error)) },
    );
    const connections = new Connections();
    const listener: RequestListener = (incoming, outgoing) => {
      const { socket } = incoming;
      connections.began(socket, outgoing);
      outgoing.once("close", () => connections.ended(socket, outgoing));
      void answer(incoming, outgoing);
    };
    const options: ServerOptions = {
      headersTimeout: limits.headersMs,
      requestTimeout: limits.headersMs + bodyReadMs + LATER_MS,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      maxHeaderSize: limits.headerBytes,
    };
    const server =
      tls === undefined ? createServer(options, listener) : createTlsServer({ ...options, ...tls }, listener);
    server.maxConnections = limits.connections;
    // A caller may end its side of the connection once it has sent its requests, and gets the answers. Node
    // would carry the requests out and answer nothing.
    Object.assign(server, { httpAllowHalfOpen: true });
    server.on("connection", (socket) => connections.accepted(socket));
    // With TLS, requests come by another socket, which is there after the handshake.
    server.on(tls === undefined ? "connection" : "secureConnection", (socket) => connections.opened(socket));
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(host, port, error)));
      server.listen(port, host, resolve);
    });
    const address = server.address() as AddressInfo;
    const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
    return new HttpServer(
      server,
      `${tls === undefined ? "http" : "https"}://${name}:${address.port}`,
      connections,
    );
  }

  /** Accepts at most so many connections from now on. More are closed at once, without an answer. */
  limitConnections(connections: number): void {
    this.#server.maxConnections = connections;
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

/**
 * The connections, with their requests. Node itself closes those that have had a request, but a stop would
 * wait for one that has not sent any yet.
 */
class Connections {
  readonly #accepted = new Set<Socket>();
  /** The requests of each connection that is ready for them. */
  readonly #requests = new Map<Socket, number>();
  /** The answers that are not complete. */
  readonly #answers = new Set<ServerResponse>();
  #isClosing = false;

  accepted(socket: Socket): void {
    this.#accepted.add(socket);
    socket.once("close", () => this.#accepted.delete(socket));
  }

  opened(socket: Socket): void {
    this.#requests.set(socket, 0);
    socket.once("close", () => this.#requests.delete(socket));
    if (this.#isClosing) socket.destroy();
  }

  began(socket: Socket, answer: ServerResponse): void {
    this.#answers.add(answer);
    if (this.#isClosing) announceClose(answer);
    this.#requests.set(socket, (this.#requests.get(socket) ?? 0) + 1);
  }

  ended(socket: Socket, answer: ServerResponse): void {
    this.#answers.delete(answer);
    const left = (this.#requests.get(socket) ?? 1) - 1;
    if (this.#requests.has(socket)) this.#requests.set(socket, left);
    if (this.#isClosing && left === 0) socket.destroySoon();
  }

  closeAll(): void {
    for (const socket of this.#accepted) socket.destroy();
  }

  /** Closes the connections that have no request now, and the others when they have none any more. */
  closeIdle(): void {
    this.#isClosing = true;
    for (const answer of this.#answers) announceClose(answer);
    for (const [socket, requests] of this.#requests) if (requests === 0) socket.destroy();
  }
}

/** Tells the caller not to send another request on the connection. */
function announceClose(answer: ServerResponse): void {
  if (!answer.headersSent) answer.shouldKeepAlive = false;
}

/** A path with a segment of dots, which a URL would leave out. */
const DOTS = /\/(?:\.|%2e){1,2}(?:[/?#]|$)/i;

/** Gives a request the path as it was sent, because that is what the application routes by. */
function asSent(request: Request, { url = "", headers }: IncomingMessage): Request {
  if (!url.startsWith("/") || !DOTS.test(url)) return request;
  return Object.defineProperty(request, "url", { value: `http://${headers.host ?? "localhost"}${url}` });
}

/**
 * Stands for a request whose URL cannot be built, because of its `Host` or its target. The application
 * refuses it like any other request, with a log line and an id.
 */
function refusedRequest(error: unknown): Request {
  // A URL is only refused as a whole because of its host.
  const isHost = error instanceof Error && (error.cause !== undefined || /host/i.test(error.message));
  const host = isHost ? "not a host" : "localhost";
  return new Request("http://localhost/no-such-target", { headers: { host } });
}

function listenError(host: string, port: number, { code, message }: NodeJS.ErrnoException): Error {
  if (code === "ENOTFOUND" || code === "EADDRNOTAVAIL" || code === "EAI_AGAIN")
    return new Error(`--host names ${host}, which is no address of this machine (${code})`);
  const problem = code === "EADDRINUSE" ? "is in use" : `cannot be used (${code ?? message})`;
  return new Error(`port ${port} ${problem}; set PORT to another port`);
}
