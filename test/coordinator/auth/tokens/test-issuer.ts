/** An issuer of JSON web tokens: key pairs, and a server on this machine that has the public keys. */
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from "jose";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import {
  noIdentities,
  type Identities,
  type Issuer,
  type PublicJwk,
} from "../../../../src/coordinator/capabilities/identities/identities.ts";

export const NOW_MS = 1_800_000_000_000;
export const NOW_S = NOW_MS / 1_000;
export const ISS = "https://issuer.example";
export const AUDIENCE = "https://leasehold.example";

export interface KeyPair {
  alg: string;
  kid: string;
  privateKey: CryptoKey;
  /** The public key, as issuers publish it. */
  jwk: PublicJwk;
}

export async function newPair(alg: string, kid: string): Promise<KeyPair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = (await exportJWK(publicKey)) as unknown as PublicJwk;
  return { alg, kid, privateKey, jwk: { ...jwk, kid, alg, use: "sig" } };
}

/** Made once, because RSA keys take time. */
export const rsa = await newPair("RS256", "rsa");
export const ec = await newPair("ES256", "ec");
export const other = await newPair("ES256", "other");

/** Signs a token that is valid at `NOW_MS`, with these claims in place of the usual ones. */
export const sign = (
  claims: Record<string, unknown> = {},
  { alg, kid, privateKey }: KeyPair = ec,
  header: Record<string, unknown> = {},
): Promise<string> =>
  new SignJWT({
    iss: ISS,
    aud: AUDIENCE,
    sub: "repo:acme/app",
    iat: NOW_S,
    exp: NOW_S + 3_600,
    ...claims,
  })
    .setProtectedHeader({ alg, kid, ...header })
    .sign(privateKey);

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token with any header, and with any text for its payload and signature. */
export const forge = (header: unknown, payload: string, signature = ""): string =>
  `${encoded(header)}.${Buffer.from(payload).toString("base64url")}.${signature}`;

/** An issuer with inline keys that makes everybody an operator. */
export const issuerOf = (changes: Partial<Issuer> = {}): Issuer => ({
  name: "test",
  issuer: ISS,
  audience: AUDIENCE,
  algorithms: ["RS256", "ES256"],
  jwksUrl: null,
  keys: [rsa.jwk, ec.jwk],
  rules: [{ claims: {}, role: "operator", cell: null }],
  ...changes,
});

export const identitiesOf = (...issuers: Issuer[]): Identities => ({ ...noIdentities, issuers });

/** Timers that ring when the test says so. */
export class TestTimers {
  #timers = new Set<() => void>();

  readonly after = (_: number, then: () => void): (() => void) => {
    this.#timers.add(then);
    return () => this.#timers.delete(then);
  };

  get size(): number {
    return this.#timers.size;
  }

  ring(): void {
    for (const then of this.#timers) {
      this.#timers.delete(then);
      then();
    }
  }
}

/** The server of an issuer's public keys. It ends with the test. */
export class KeyServer {
  keys: unknown[];
  /** Answers instead of the keys. */
  answer: ((response: ServerResponse, request: IncomingMessage) => void) | undefined;
  /** The paths that were read. */
  readonly paths: string[] = [];
  #port = 0;

  constructor(keys: unknown[]) {
    this.keys = keys;
  }

  static async start(...keys: unknown[]): Promise<KeyServer> {
    const server = new KeyServer(keys);
    const http = createServer((request, response) => {
      server.paths.push(request.url ?? "");
      if (server.answer !== undefined) server.answer(response, request);
      else response.setHeader("content-type", "application/json").end(JSON.stringify({ keys: server.keys }));
    });
    await once(http.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => {
      http.closeAllConnections();
      http.close();
    });
    server.#port = (http.address() as AddressInfo).port;
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/jwks`;
  }

  get reads(): number {
    return this.paths.length;
  }

  /** From now on, every read fails. */
  fail(): void {
    this.answer = (response) => response.writeHead(500).end("no");
  }
}
