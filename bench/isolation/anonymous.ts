/** Callers without a key. They may ask for the documents as often as they like. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpClient } from "../client/http-client.ts";

export type Turn = (http: HttpClient) => Promise<unknown>;

/** It has half a megabyte. */
const DOCUMENT = "/openapi.json";
const READERS = 32;
const CONNECTIONS = 10;
/** How much a server reads of a connection at a time. */
const CHUNK_BYTES = 65_536;
/** How long a connection stays open. */
const HELD_MS = 200;

export const documentReaders = (): Turn[] =>
  Array.from({ length: READERS }, () => (http: HttpClient) => http.send("GET", DOCUMENT, ""));

/** Each sends as many requests as fit into one chunk, and reads no answer. */
export function pipelines(url: string): Turn[] {
  const { hostname, port } = new URL(url);
  const request = `GET ${DOCUMENT} HTTP/1.1\r\nHost: a\r\n\r\n`;
  const requests = request.repeat(Math.floor(CHUNK_BYTES / request.length));
  return Array.from({ length: CONNECTIONS }, () => async () => {
    const socket = connect(Number(port), hostname).on("error", () => {});
    socket.pause().write(requests);
    await sleep(HELD_MS);
    socket.destroy();
  });
}
