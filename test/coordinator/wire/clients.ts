/** Clients of the wire that call the application without a socket. */
import { createRegistry, type DescService } from "@bufbuild/protobuf";
import { StringValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient, type Client, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { createExecutionContext } from "cloudflare:test";
import { serveRequest } from "../../../src/coordinator/api/web-request.ts";
import { ClaimService } from "../../../src/coordinator/wire/protobuf.ts";
import type { KeyName } from "../../suites/conformance/client.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { keyOf, type Api } from "../../support/workerd/api.ts";
import { encode } from "./bytes.ts";

export const BASE = "https://leasehold.test/grpc";
export const SERVICE = "gitlab.cells.topology_service.claims.v1.ClaimService";

export const send = async (api: Api, request: Request): Promise<Response> =>
  serveRequest(request, api.env, createExecutionContext());

/** A begin of a route, made without our schemas. */
export const beginBytes = (name = freshName()): Uint8Array =>
  encode([
    [
      1,
      [
        [
          2,
          [
            [1, 2],
            [2, 7],
          ],
        ],
        [
          3,
          [
            [1, 3],
            [2, new Uint8Array(8)],
          ],
        ],
        [5, [[1, name]]],
      ],
    ],
    [3, 1],
  ]);

export type Protocol = "Connect" | "Connect JSON" | "Connect GET" | "gRPC-Web";
export const protocols: readonly Protocol[] = ["Connect", "Connect JSON", "Connect GET", "gRPC-Web"];

export const clientOf = (api: Api, protocol?: Protocol, key?: KeyName | ""): Client<typeof ClaimService> =>
  clientFor(ClaimService, api, protocol, key);

export const clientFor = <Service extends DescService>(
  service: Service,
  api: Api,
  protocol: Protocol = "Connect",
  key: KeyName | "" = "cell 1",
): Client<Service> => createClient(service, transportOf(api, protocol, key));

export function transportOf(api: Api, protocol: Protocol, key: KeyName | ""): Transport {
  const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    // The client asks for `redirect: "error"`, which workerd does not have.
    const { redirect: _, ...own } = init ?? {};
    const request = new Request(url, own);
    if (key !== "") request.headers.set("authorization", `Bearer ${await keyOf(key)}`);
    return send(api, request);
  };
  const options = {
    baseUrl: BASE,
    fetch,
    jsonOptions: { registry: createRegistry(StringValueSchema) },
    useBinaryFormat: protocol !== "Connect JSON",
    useHttpGet: protocol === "Connect GET",
  };
  return protocol === "gRPC-Web" ? createGrpcWebTransport(options) : createConnectTransport(options);
}
