import {
  Server,
  ServerCredentials,
  status,
  type ConnectionInjector,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import type { Http2Server } from "node:http2";
import { createServer, type AddressInfo, type Server as Listener, type Socket } from "node:net";
import type { HealthCheckRequest } from "../../coordinator/wire/generated/grpc/health/v1/health_pb.js";
import { Health } from "../../coordinator/wire/generated/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../coordinator/wire/generated/grpc/reflection/v1/reflection_pb.js";
import { defaultLimits, MAX_MESSAGE_BYTES, metadataBytes, type CallLimits } from "./call-limits.ts";
import { forward } from "./forward.ts";
import { HealthOfCoordinator } from "./health.ts";
import { forwarded, pathOf, rawService, typedService } from "./raw-service.ts";
import type { MessageBudget } from "./message-budget.ts";
import { reflect } from "./reflection.ts";
import { RequestGuard } from "./request-guard.ts";
import type { Send } from "./send.ts";

/** Files in PEM. */
export interface GrpcTls {
  cert: Buffer;
  key: Buffer;
  /** The authorities whose client certificates are accepted. With it, every client must have one. */
  clientCa?: Buffer;
}

export interface GrpcOptions {
  host: string;
  /** 0 means any free port. */
  port: number;
  /** Undefined: HTTP/2 without TLS. */
  tls?: GrpcTls | undefined;
  /** More connections are closed at once. */
  connections: number;
  limits?: Partial<CallLimits> | undefined;
  /** Sends a request to the coordinator. */
  send: Send;
}

const MAX_STREAMS_PER_CONNECTION = 250;

const channelOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": -1,
  "grpc.max_concurrent_streams": MAX_STREAMS_PER_CONNECTION,
  // Ends a connection whose other side is gone, and one that never becomes HTTP/2.
  "grpc.keepalive_time_ms": 60_000,
  "grpc.keepalive_timeout_ms": 20_000,
  // Clients of GitLab keep an idle connection for an hour.
  "grpc.max_connection_idle_ms": 2 * 3_600_000,
  "grpc.enable_channelz": 0,
};

/** Serves native gRPC over HTTP/2, and forwards the calls to a coordinator as gRPC-Web. */
export class GrpcServer {
  readonly port: number;
  readonly #server: Server;
  readonly #listener: Listener;
  readonly #sockets: ReadonlySet<Socket>;
  readonly #health: HealthOfCoordinator;

  private constructor(
    server: Server,
    listener: Listener,
    sockets: ReadonlySet<Socket>,
    health: HealthOfCoordinator,
  ) {
    this.port = (listener.address() as AddressInfo).port;
    this.#server = server;
    this.#listener = listener;
    this.#sockets = sockets;
    this.#health = health;
  }

  /** Throws the error of the system if the port cannot be used. */
  static async listen(options: GrpcOptions): Promise<GrpcServer> {
    const { send } = options;
    const limits = { ...defaultLimits, ...options.limits };
    const guard = new RequestGuard(limits, (path) => forwardedPaths.has(path));
    const server = new Server({ ...channelOptions, interceptors: [guard.interceptor] });
    const health = new HealthOfCoordinator(async () => {
      const answer = await send({ method: "GET", path: "/readyz", headers: {} });
      return answer.status === 200;
    });
    addForwarded(server, send, guard.messages, limits.calls);
    addHealth(server, health);
    server.addService(typedService(ServerReflection), { serverReflectionInfo: reflect });
    const injector = server.createConnectionInjector(credentialsOf(options.tls));
    for (const http2 of http2ServersOf(server)) http2.prependListener("stream", guard.readDeadline);
    const sockets = new Set<Socket>();
    const listener = createServer({ noDelay: true }, (socket) => accept(socket, sockets, injector));
    listener.maxConnections = options.connections;
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(options.port, options.host, resolve);
    });
    return new GrpcServer(server, listener, sockets, health);
  }

  /** Accepts no more calls, and waits until those that run are answered, at most `maxMs`. */
  async close(maxMs: number): Promise<void> {
    this.#health.drain();
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    // Its callback doesn't wait for the calls of sessions that Node itself has begun to close.
    this.#server.tryShutdown(() => {});
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy();
    const timer = setTimeout(() => {
      this.#server.forceShutdown();
      for (const socket of this.#sockets) socket.destroy();
    }, maxMs);
    await closed;
    clearTimeout(timer);
  }
}

/** The library has no other way to see a request before it does. */
const http2ServersOf = (server: Server): Iterable<Http2Server> =>
  (server as unknown as { http2Servers: ReadonlyMap<Http2Server, unknown> }).http2Servers.keys();

function accept(socket: Socket, sockets: Set<Socket>, injector: ConnectionInjector): void {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket));
  socket.on("error", () => socket.destroy());
  injector.injectConnection(socket);
}

function credentialsOf(tls: GrpcTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const { cert, key, clientCa } = tls;
  const pair = [{ cert_chain: cert, private_key: key }];
  return ServerCredentials.createSsl(clientCa ?? null, pair, clientCa !== undefined);
}

const forwardedPaths: ReadonlySet<string> = new Set(
  forwarded.flatMap(({ methods }) => methods.map((method) => pathOf(method))),
);

function addForwarded(server: Server, send: Send, messages: MessageBudget, maxCalls: number): void {
  let running = 0;
  for (const service of forwarded) {
    const handlers = service.methods.map((method) => {
      const path = pathOf(method);
      const handle = async (
        call: ServerUnaryCall<Buffer, Buffer>,
        answer: sendUnaryData<Buffer>,
      ): Promise<void> => {
        const bytes = call.request.length + metadataBytes(call.metadata);
        const release = running < maxCalls ? messages.hold(bytes) : undefined;
        if (release === undefined) return answer(TOO_MANY);
        running += 1;
        let isRunning = true;
        const cancelled = new AbortController();
        // It is also emitted after every call.
        call.on("cancelled", () => isRunning && cancelled.abort());
        const { message, status: ended } = await forward(
          {
            path,
            message: call.request,
            metadata: call.metadata,
            deadlineMs: Number(call.getDeadline()),
            certificate: call.getAuthContext()?.sslPeerCertificate?.raw,
            signal: cancelled.signal,
          },
          send,
        );
        release();
        running -= 1;
        isRunning = false;
        if (message === undefined) answer(ended);
        else answer(null, message, ended.metadata);
      };
      return [method.localName, handle] as const;
    });
    server.addService(rawService(service), Object.fromEntries(handlers));
  }
}

const TOO_MANY = {
  code: status.RESOURCE_EXHAUSTED,
  details: "too many calls are running here already; repeat the call",
};

function addHealth(server: Server, health: HealthOfCoordinator): void {
  const unknown = { code: status.NOT_FOUND, details: "there is no such service" };
  server.addService(typedService(Health), {
    check: ({ request }: ServerUnaryCall<HealthCheckRequest, unknown>, answer: sendUnaryData<unknown>) => {
      void health
        .check(request.service)
        .then((serving) => (serving === undefined ? answer(unknown) : answer(null, { status: serving })));
    },
    list: (_call: ServerUnaryCall<unknown, unknown>, answer: sendUnaryData<unknown>) => {
      void health.list().then((statuses) => answer(null, { statuses }));
    },
    watch: (watcher: ServerWritableStream<HealthCheckRequest, never>) => health.watch(watcher),
  });
}
