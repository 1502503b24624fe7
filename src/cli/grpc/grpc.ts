import { readAuthorities, readTls } from "../../../scripts/tls-files.ts";
import type { Send } from "../../grpc/forward.ts";
import type { GrpcTls } from "../../grpc/grpc-server.ts";
import { findUrl } from "../connection/target.ts";
import { CommandError, messageOf, usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { exitCodes } from "../framework/exit-codes.ts";
import { untilAborted } from "../framework/until-aborted.ts";
import { fields } from "../output/table.ts";
import { printResult } from "../output/print.ts";

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

const send: Send = (request) => fetch(request);

/** Forwards native gRPC until Ctrl-C, which is not a failure. */
export async function grpc(context: Context, options: GrpcCommandOptions): Promise<undefined> {
  const { io } = context;
  const coordinator = await findUrl(io, context.options);
  const tls = await tlsOf(options);
  const { host, port } = options;
  // No other command needs it.
  const { GrpcServer } = await import("../../grpc/grpc-server.ts");
  const listening = GrpcServer.listen({ host, port, tls, connections: MAX_CONNECTIONS, coordinator, send });
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
        },
        text: (style) =>
          [
            style.bold(`gRPC is ready at ${address}`),
            fields([
              ["coordinator", coordinator],
              ["TLS", tls === undefined ? "no" : "yes"],
              ["clients", tls?.clientCa === undefined ? undefined : "must have a certificate"],
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
