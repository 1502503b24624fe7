/** `leasehold grpc` as a process of its own, and clients of it. */
import { Client, credentials, Metadata, type ChannelCredentials } from "@grpc/grpc-js";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../../src/hosts/workerd/free-port.ts";
import { Authority } from "../../test/hosts/grpc/certificates.ts";

const program = join(import.meta.dirname, "../../scripts/leasehold.mjs");

export interface Bridge {
  /** Makes a call. Resolves to false if it fails. */
  send: (path: string, message: Uint8Array) => Promise<boolean>;
  stop: () => Promise<void>;
}

/** Starts a bridge in front of a coordinator, and connects to it once, as one process of a cell does. */
export async function startBridge(url: string, authorization: string, withMtls: boolean): Promise<Bridge> {
  const port = await freePort();
  const { options, channel, close } = withMtls ? mtls() : plain();
  const child = spawn(
    process.execPath,
    [program, "grpc", "--url", url, "--port", String(port), "--jsonl", ...options],
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, LEASEHOLD_KEY: "" } },
  );
  const ended = once(child, "exit");
  const [line] = (await Promise.race([
    once(createInterface(child.stdout), "line"),
    ended.then(() => []),
  ])) as [string?];
  if (line === undefined) throw new Error("leasehold grpc ended before it was ready");
  // GitLab's clients keep their connections alive too.
  const keepalive = { "grpc.keepalive_time_ms": 20_000, "grpc.keepalive_permit_without_calls": 1 };
  const client = new Client(`localhost:${port}`, channel, keepalive);
  const metadata = new Metadata();
  metadata.set("authorization", authorization);
  return {
    send: (path, message) =>
      new Promise((resolve) => {
        const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
        client.makeUnaryRequest(path, asIs, asIs, bytes, metadata, (error) => resolve(error === null));
      }),
    stop: async () => {
      client.close();
      child.kill("SIGTERM");
      await ended;
      close();
    },
  };
}

const asIs = (bytes: Buffer): Buffer => bytes;

interface Security {
  options: readonly string[];
  channel: ChannelCredentials;
  close: () => void;
}

const plain = (): Security => ({ options: [], channel: credentials.createInsecure(), close: () => {} });

/** Both sides have certificates of one authority. */
function mtls(): Security {
  const authority = new Authority();
  const server = authority.issue("bridge", { sans: ["DNS:localhost"] });
  const own = authority.issue("cell 1", { sans: ["DNS:cell-1.test"] });
  return {
    options: ["--cert", server.certFile, "--key", server.keyFile, "--client-ca", authority.certFile],
    channel: credentials.createSsl(authority.cert, own.key, own.cert),
    close: () => authority.close(),
  };
}
