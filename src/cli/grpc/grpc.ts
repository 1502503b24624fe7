import { readAuthorities, readTls } from "../../hosts/workerd/tls-files.ts";
import type { GrpcTls } from "../../hosts/grpc/grpc-server.ts";
import { httpSend } from "../../hosts/grpc/send.ts";
import { keyFactsOf } from "../connection/key-facts.ts";
import { findUrl, findUrlAndKey } from "../connection/target.ts";
import { CommandError, messageOf, usageError, exitCodes } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { untilAborted } from "../framework/io.ts";
import { fields } from "../output/table.ts";
import { printResult } from "../output/print.ts";
import { sendWith } from "./send-certificate.ts";

interface GrpcCommandOptions {
  host: string;
  port: number;
  cert?: string;
  key?: string;
  clientCa?: string;
}

/** A proxy in front usually gives a server this time to end. */
const DRAIN_MS = 10_000;
/** Each takes a file descriptor, and one more for its request to the coordinator. */
const MAX_CONNECTIONS = 4_096;

/** Forwards native gRPC until Ctrl-C, which is not a failure. */
export async function grpc(context: Context, options: GrpcCommandOptions): Promise<undefined> {
  const { io } = context;
  const tls = await tlsOf(options);
  const { coordinator, key } = await upstreamOf(context, tls);
  const { host, port } = options;
  // No other command needs it.
  const { GrpcServer } = await import("../../hosts/grpc/grpc-server.ts");
  const listening = GrpcServer.listen({
    host,
    port,
    tls,
    connections: MAX_CONNECTIONS,
    send: sendWith(key, httpSend(coordinator)),
  });
  const server = await listening.catch((error: unknown) => {
    throw listenError(error as NodeJS.ErrnoException, options);
  });
  try {
    const address = `${host.includes(":") ? `[${host}]` : host}:${server.port}`;
    await printResult(
      io,
      {
        document: {
          address,
          coordinator_url: coordinator,
          tls: tls !== undefined,
          client_certificates: tls?.clientCa === undefined ? "ignored" : "required",
          identities: key === undefined ? "keys" : "keys or certificates",
        },
        text: (style) =>
          [
            style.bold(`gRPC is ready at ${address}`),
            fields([
              ["coordinator", coordinator],
              ["TLS", tls === undefined ? "no" : "yes"],
              ["clients", tls?.clientCa === undefined ? undefined : clientsText(key)],
            ]),
            "Ctrl-C stops it, after the calls that are running.",
          ].join("\n\n"),
      },
      context.format,
    );
    await untilAborted(io.signal);
  } finally {
    await server.close(DRAIN_MS);
  }
  return undefined;
}

interface Upstream {
  coordinator: string;
  /** With it, the certificates of clients are sent. */
  key?: string;
}

/** Finds the coordinator, and the bridge's own key for it. A key of another role says more than it may. */
async function upstreamOf({ io, options }: Context, tls: GrpcTls | undefined): Promise<Upstream> {
  if (tls?.clientCa === undefined) return { coordinator: await findUrl(io, options) };
  const { url: coordinator, key } = await findUrlAndKey(io, options);
  return key !== undefined && keyFactsOf(key)?.role === "bridge" ? { coordinator, key } : { coordinator };
}

const clientsText = (key: string | undefined): string =>
  key === undefined
    ? "must have a certificate and a key; a key of the role bridge would let certificates suffice"
    : "must have a certificate, and may have a key";

async function tlsOf({ cert, key, clientCa }: GrpcCommandOptions): Promise<GrpcTls | undefined> {
  if (cert === undefined && key === undefined) {
    if (clientCa !== undefined) throw usageError("--client-ca needs --cert and --key");
    return undefined;
  }
  if (cert === undefined) throw usageError("--key needs --cert");
  if (key === undefined) throw usageError("--cert needs --key");
  try {
    return {
      ...(await readTls(cert, key)),
      ...(clientCa === undefined ? {} : { clientCa: await readAuthorities("--client-ca", clientCa) }),
    };
  } catch (error) {
    throw usageError(messageOf(error));
  }
}

function listenError(error: NodeJS.ErrnoException, { host, port }: GrpcCommandOptions): CommandError {
  if (error.code === "EADDRINUSE")
    return new CommandError(`port ${port} is in use`, exitCodes.failed, [
      `leasehold grpc --port ${port < 65_535 ? port + 1 : 8_788}`,
    ]);
  return new CommandError(
    `${host}:${port} cannot be used (${error.code ?? error.message})`,
    exitCodes.failed,
  );
}
