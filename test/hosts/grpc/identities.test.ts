/** Cells that prove who they are with a certificate or a token alone, over native gRPC with mTLS (A4). */
import { Code, createClient, type Client as WireClient } from "@connectrpc/connect";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClaimService } from "../../../src/coordinator/wire/protobuf.ts";
import { freshName } from "../../suites/conformance/leases.ts";
import { begin, failure, own, record } from "../../suites/wire/messages.ts";
import type { Issued } from "./certificates.ts";
import { nativeTransport } from "./native-transport.ts";
import { places, serveGrpc, type GrpcDeployment } from "./served.ts";

const AUDIENCE = "leasehold";

/** An issuer of tokens on this machine. */
class Issuer {
  readonly server: Server;
  /** The keys that it publishes. */
  readonly published: JWK[] = [];
  /** What it signs with. */
  signing: { kid: string; privateKey: CryptoKey } | undefined;

  constructor() {
    this.server = createServer((_, answer) => answer.end(JSON.stringify({ keys: this.published })));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Makes a key, and publishes it. */
  async publish(): Promise<{ kid: string; privateKey: CryptoKey }> {
    const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
    const kid = String(this.published.length);
    this.published.push({ ...(await exportJWK(publicKey)), kid, alg: "ES256" });
    return { kid, privateKey };
  }

  sign(sub: string): Promise<string> {
    if (this.signing === undefined) throw new Error("the issuer has no key yet");
    const { kid, privateKey } = this.signing;
    return new SignJWT({})
      .setProtectedHeader({ alg: "ES256", kid })
      .setIssuer(this.url)
      .setAudience(AUDIENCE)
      .setSubject(sub)
      .setIssuedAt()
      .setExpirationTime("10m")
      .sign(privateKey);
  }
}

describe.each(places)("%s", (place) => {
  const issuer = new Issuer();
  let deployment: GrpcDeployment;
  let forCell: (cell: string) => Issued;

  beforeAll(async () => {
    await once(issuer.server.listen(0, "127.0.0.1"), "listening");
    issuer.signing = await issuer.publish();
    deployment = await serveGrpc(place);
    forCell = (cell) => deployment.authority.issue(`cell ${cell}`, { sans: [`DNS:cell-${cell}.test`] });
    const rules = ["1", "2"].map((cell) => ({ dns: `cell-${cell}.test`, role: "cell", cell_id: cell }));
    await deployment.api.json(200, "PUT", "/v1/admin/identities", {
      body: {
        version: 0,
        issuers: [
          {
            name: "local",
            issuer: issuer.url,
            audience: AUDIENCE,
            algorithms: ["ES256"],
            jwks_url: `${issuer.url}/keys`,
            rules: [{ claims: { sub: "cell-1" }, role: "cell", cell_id: "1" }],
          },
        ],
        authorities: [{ name: "cells", certificate: deployment.authority.cert.toString(), rules }],
      },
    });
  });
  afterAll(async () => {
    issuer.server.close();
    await deployment.close();
  });

  const clientWith = (certificate: Issued, token?: () => Promise<string>): WireClient<typeof ClaimService> =>
    createClient(
      ClaimService,
      nativeTransport(deployment.connect(certificate), async () => token?.()),
    );

  test("[A4] a cell needs nothing but its certificate, and can't act for another cell", async () => {
    const client = clientWith(forCell("1"));
    expect(await own(deployment.api, client, [100])).toHaveLength(1);
    const other = await failure(client.beginUpdate(begin([record(freshName())], [], 2n)));
    expect(other.code).toBe(Code.PermissionDenied);
    const second = await failure(clientWith(forCell("2")).beginUpdate(begin([record(freshName())])));
    expect(second.code).toBe(Code.PermissionDenied);
  });

  test("[A4] two certificates of a cell are valid at once, and an expired one is not", async () => {
    const [before, after] = [clientWith(forCell("1")), clientWith(forCell("1"))];
    for (const client of [before, after])
      expect(await client.beginUpdate(begin([record(freshName())]))).toMatchObject({ cellId: 1n });
    const expired = deployment.authority.issue("cell 1", { sans: ["DNS:cell-1.test"], days: -1 });
    await expect(clientWith(expired).listLeases({ cellId: 1n })).rejects.toThrow();
  });

  test("[A4] a certificate whose name has no rule may do nothing", async () => {
    const unknown = deployment.authority.issue("cell 3", { sans: ["DNS:cell-3.test"] });
    expect((await failure(clientWith(unknown).listLeases({ cellId: 1n }))).code).toBe(Code.PermissionDenied);
  });

  test("[A4] a certificate in a header of somebody who is no bridge counts for nothing", async () => {
    const headers = { "client-cert": `:${derText(forCell("1").cert)}:` };
    const answer = await deployment.api.send("GET", "/v1/cells/1/leases", { key: null, headers });
    expect(answer.status).toBe(401);
  });

  test("[A4] tokens go on under load while the issuer changes the key that it signs with", async () => {
    // An unknown key is read at most every 30 s, so issuers publish a key before they use it.
    const next = await issuer.publish();
    const client = clientWith(forCell("2"), () => issuer.sign("cell-1"));
    const done = new AbortController();
    const load = Array.from({ length: 4 }, async () => {
      let begun = 0;
      for (; !done.signal.aborted; begun += 1) {
        const { leaseUuid } = await client.beginUpdate(begin([record(freshName())]));
        await client.rollbackUpdate({ cellId: 1n, leaseUuid });
      }
      return begun;
    });
    await client.listLeases({ cellId: 1n });
    issuer.signing = next;
    await client.listLeases({ cellId: 1n });
    done.abort();
    for (const count of await Promise.all(load)) expect(count).toBeGreaterThan(0);
    issuer.signing = await generateKeyPair("ES256").then(({ privateKey }) => ({ kid: "9", privateKey }));
    expect((await failure(client.listLeases({ cellId: 1n }))).code).toBe(Code.Unauthenticated);
  });
});

const derText = (pem: Buffer): string => pem.toString().replaceAll(/-----[^-]+-----|\s/g, "");
