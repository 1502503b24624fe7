/** Which client certificates the servers of Node hand over to the coordinator, over real TLS. */
import { Client as NativeClient, credentials } from "@grpc/grpc-js";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect, type ConnectionOptions } from "node:tls";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../src/hosts/workerd/free-port.ts";
import { readAuthorities } from "../../../src/hosts/workerd/tls-files.ts";
import { pathOf } from "../../../src/coordinator/api/address.ts";
import type { HttpAnswer, Incoming } from "../../../src/coordinator/api/incoming.ts";
import { Host } from "../../../src/hosts/node/host.ts";
import { HttpServer, type HttpOptions } from "../../../src/hosts/standalone/http-server.ts";
import { startStandalone, type Standalone } from "../../../src/hosts/standalone/server.ts";
import { Authority, derOf, type Issued } from "../grpc/certificates.ts";
import { callBytes } from "../grpc/native-transport.ts";

const authority = new Authority();
const impostor = new Authority();
afterAll(() => {
  authority.close();
  impostor.close();
});

const server = authority.issue("server", { sans: ["IP:127.0.0.1", "DNS:localhost"] });
const own = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
const another = authority.issue("cell 2", { sans: ["DNS:cell-2.test"] });
const forged = impostor.issue("cell 1", { sans: ["DNS:cell-1.test"] });
const expired = authority.issue("cell 1", { sans: ["DNS:cell-1.test"], days: -1 });

const NONE = "none";
const base64Of = ({ cert }: Issued): string => derOf(cert).toString("base64");
/** The certificate of a request as text. */
const presented = (asked: Incoming): string => {
  const found = asked.certificate();
  return found.ok && found.value !== undefined ? Buffer.from(found.value).toString("base64") : NONE;
};

interface Asked {
  agent?: Agent;
  headers?: Record<string, string>;
  path?: string;
}

/** Sends a request over TLS, with a certificate or without one. */
async function ask(url: string, certificate: Issued | undefined, asked: Asked = {}): Promise<string> {
  const { path = "/", headers = {}, agent } = asked;
  const pair = certificate && { cert: certificate.cert, key: certificate.key };
  const sent = request(`${url}${path}`, { ca: authority.cert, agent: agent ?? false, headers, ...pair });
  sent.end();
  const [answer] = (await once(sent, "response")) as [NodeJS.ReadableStream];
  return text(answer);
}

/** Starts a server that answers each request with its certificate. */
const listen = (tls: NonNullable<HttpOptions["tls"]>): Promise<HttpServer> =>
  HttpServer.listen(
    {
      serve: async (asked) => ({ status: 200, headers: {}, body: presented(asked) }),
      refuse: () => ({ status: 400, headers: {}, body: null }),
    },
    { host: "127.0.0.1", port: 0, bodyReadMs: 1_000, tls },
  );

describe("HTTPS with --client-ca", () => {
  let http: HttpServer;
  beforeAll(async () => {
    http = await listen({ cert: server.cert, key: server.key, clientCa: authority.cert });
  });
  afterAll(() => http.close(0));

  test("[A4] hands over a certificate that the authority has signed", async () => {
    expect(await ask(http.url, own)).toBe(base64Of(own));
    expect(await ask(http.url, another)).toBe(base64Of(another));
    expect(await ask(http.url, own, { path: "/a/../b" })).toBe(base64Of(own));
  });

  test("[A4] hands over nothing else", async () => {
    expect(await ask(http.url, undefined)).toBe(NONE);
    expect(await ask(http.url, forged)).toBe(NONE);
    expect(await ask(http.url, expired)).toBe(NONE);
    const headers = { "client-cert": `:${base64Of(own)}:` };
    expect(await ask(http.url, undefined, { headers })).toBe(NONE);
    expect(await ask(http.url, another, { headers })).toBe(base64Of(another));
  });

  test("each request of a connection has the certificate of the connection", async () => {
    const agents = [own, another].map(
      ({ cert, key }) => new Agent({ ca: authority.cert, cert, key, keepAlive: true, maxSockets: 1 }),
    );
    const asked = agents.flatMap((agent) =>
      Array.from({ length: 3 }, () => ask(http.url, undefined, { agent })),
    );
    const answers = await Promise.all(asked);
    for (const agent of agents) agent.destroy();
    expect(answers).toEqual([own, own, own, another, another, another].map(base64Of));
  });

  describe.each(["TLSv1.2", "TLSv1.3"] as const)("%s", (version) => {
    const get = async (
      more: ConnectionOptions,
    ): Promise<{ answer: string; session: Buffer; reused: boolean }> => {
      const port = Number(new URL(http.url).port);
      const versions = { minVersion: version, maxVersion: version };
      const socket = connect({
        port,
        host: "127.0.0.1",
        ca: authority.cert,
        ...versions,
        ...more,
      });
      let session = Buffer.alloc(0);
      let reused = false;
      socket.on("session", (made) => (session = made));
      socket.once("secureConnect", () => (reused = socket.isSessionReused()));
      socket.end("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      const answer = await text(socket);
      return { answer: answer.split("\r\n\r\n")[1] ?? "", session, reused };
    };

    test.each([
      ["with a certificate", own, base64Of(own)],
      ["without one", undefined, NONE],
      ["with that of another authority", forged, NONE],
    ])("[A4] a resumed session %s is as the first one was", async (_, certificate, expected) => {
      const pair = certificate && { cert: certificate.cert, key: certificate.key };
      const first = await get({ ...pair });
      expect([first.answer, first.reused]).toEqual([expected, false]);
      // Who resumes it has no certificate, or another one.
      const changed = { cert: another.cert, key: another.key };
      for (const now of [{ ...pair }, {}, changed]) {
        const next = await get({ ...now, session: first.session });
        expect([next.answer, next.reused]).toEqual([expected, true]);
      }
    });
  });

  test("without --client-ca, no certificate is asked for", async () => {
    const plain = await listen({ cert: server.cert, key: server.key });
    onTestFinished(() => plain.close(0));
    expect(await ask(plain.url, own)).toBe(NONE);
  });
});

test("--client-ca with an intermediate authority needs those above it, as TLS does", async () => {
  const extensions = ["basicConstraints=critical,CA:TRUE"];
  const intermediate = authority.issue("intermediate", { sans: [], extensions });
  await expect(readAuthorities("--client-ca", intermediate.certFile)).rejects.toThrow(
    "which has CN=intermediate without the authority that signed it (CN=test authority); add its certificate",
  );
  const chain = Buffer.concat([intermediate.cert, authority.cert]);
  const file = join(authority.folder, "chain.pem");
  writeFileSync(file, chain);
  expect(await readAuthorities("--client-ca", file)).toEqual(chain);
  expect(await readAuthorities("--client-ca", authority.certFile)).toEqual(authority.cert);
});

describe("npm run standalone with --client-ca", () => {
  const folder = mkdtempSync(join(tmpdir(), "client-certificates-"));
  const seen: [path: string, certificate: string][] = [];
  /** Records what the coordinator receives. */
  class Recording extends Host {
    override serve(asked: Incoming): Promise<HttpAnswer> {
      seen.push([pathOf(asked.target), presented(asked)]);
      return super.serve(asked);
    }
  }
  let standalone: Standalone;
  beforeAll(async () => {
    standalone = await startStandalone({
      host: "127.0.0.1",
      port: await freePort(),
      stateFolder: join(folder, "state"),
      variables: {},
      tls: { cert: server.cert, key: server.key, clientCa: authority.cert },
      grpc: { port: 0 },
      log: () => {},
      onStorageFailure: (failure) => {
        throw failure;
      },
      makeHost: (options) => new Recording(options),
    });
  });
  afterAll(async () => {
    await standalone.stop();
    rmSync(folder, { recursive: true });
  });

  test("[A4] the coordinator receives the certificate of a client of HTTPS, beside a key", async () => {
    seen.length = 0;
    const headers = { authorization: `Bearer ${standalone.keys.operator}` };
    expect(await ask(standalone.url, own, { path: "/v1/limits", headers })).toContain("batch_ops");
    expect(await ask(standalone.url, undefined, { path: "/v1/limits", headers })).toContain("batch_ops");
    expect(seen).toEqual([
      ["/v1/limits", base64Of(own)],
      ["/v1/limits", NONE],
    ]);
  });

  test("[A4] the coordinator receives the certificate of a client of gRPC, beside a key", async () => {
    seen.length = 0;
    const path = "/gitlab.cells.topology_service.ClassifyService/GetCells";
    const secured = credentials.createSsl(authority.cert, own.key, own.cert);
    const client = new NativeClient(standalone.grpcAddress ?? "", secured, {
      // Node warns of a TLS server name that is an IP address.
      "grpc.ssl_target_name_override": "localhost",
    });
    onTestFinished(() => client.close());
    const metadata = { authorization: `Bearer ${standalone.keys.router}` };
    expect(await callBytes(client, path, new Uint8Array(), { metadata })).toBeInstanceOf(Buffer);
    expect(seen).toEqual([[`/grpc${path}`, base64Of(own)]]);
  });
});
