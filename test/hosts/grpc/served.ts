/** Servers of native gRPC over mTLS for tests: that of a coordinator, and a bridge to one. */
import { Client as NativeClient, credentials, type ChannelOptions } from "@grpc/grpc-js";
import { sendWith } from "../../../src/cli/grpc/send-certificate.ts";
import { GrpcServer, type GrpcOptions } from "../../../src/hosts/grpc/grpc-server.ts";
import { httpSend, requestSend } from "../../../src/hosts/grpc/send.ts";
import { Client } from "../../suites/conformance/client.ts";
import { keyIn } from "../../suites/conformance/coordinator.ts";
import { serveFiles, type Served } from "../standalone/served.ts";
import { Authority, type Issued } from "./certificates.ts";

export type Place = "standalone" | "bridge";
export const places: readonly Place[] = ["standalone", "bridge"];

export interface GrpcDeployment {
  served: Served;
  /** The API over HTTP. */
  api: Client;
  grpc: GrpcServer;
  authority: Authority;
  /** A client with a certificate for cell 1, or with the given one. */
  connect: (certificate?: Issued, options?: ChannelOptions) => NativeClient;
  close: () => Promise<void>;
}

async function bridgeKeyOf(api: Client): Promise<string> {
  const body = { role: "bridge", reason: "a test" };
  return (await api.json<{ key: string }>(201, "POST", "/v1/admin/keys", { body })).key;
}

/** Starts a coordinator with cells 1 and 2, and native gRPC in front of it. */
export async function serveGrpc(
  place: Place,
  changes: Partial<GrpcOptions> = {},
  variables: Readonly<Record<string, string>> = {},
): Promise<GrpcDeployment> {
  const served = await serveFiles(["1", "2"], variables);
  const { host, url, keys } = served;
  const api = new Client({ url, fetch: (to, init) => fetch(to, init), keyOf: (name) => keyIn(keys, name) });
  for (const cell of ["1", "2"])
    await api.json(201, "POST", "/v1/admin/cells", {
      body: { cell_id: cell, name: `Cell ${cell}`, address: `https://cell-${cell}.test` },
    });
  const authority = new Authority();
  const { cert, key } = authority.issue("server", { sans: ["IP:127.0.0.1", "DNS:localhost"] });
  const own = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
  const grpc = await GrpcServer.listen({
    host: "127.0.0.1",
    port: 0,
    tls: { cert, key, clientCa: authority.cert },
    connections: 100,
    ...(place === "standalone"
      ? { send: requestSend("http://localhost", (request, presented) => host.dispatch(request, presented)) }
      : { send: sendWith(await bridgeKeyOf(api), httpSend(url)) }),
    ...changes,
  });
  const clients: NativeClient[] = [];
  return {
    served,
    api,
    grpc,
    authority,
    connect: (certificate = own, options = {}) => {
      const secured = credentials.createSsl(authority.cert, certificate.key, certificate.cert);
      const client = new NativeClient(`localhost:${grpc.port}`, secured, options);
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const client of clients) client.close();
      await grpc.close(1_000);
      await served.close();
      authority.close();
    },
  };
}
