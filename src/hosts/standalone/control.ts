import { rmSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { BackedUp } from "./backup.ts";

/** The socket by which `--backup` reaches the server of a state folder. Only the owner can use it. */
const socketOf = (folder: string): string => join(folder, "control.sock");

const PRIVATE = 0o600;
const MAX_REQUEST_BYTES = 65_536;

type Answer = { ok: true; value: BackedUp } | { ok: false; error: string };

/** Carries out one backup at a time. */
export type BackUp = (to: string) => Promise<BackedUp>;

/**
 * Listens for backups. Returns a function that stops it. Throws if the system refuses the socket, for example
 * because its path is longer than about 100 bytes.
 */
export async function listenForBackups(folder: string, backUp: BackUp): Promise<() => void> {
  let latest: Promise<unknown> = Promise.resolve();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    void readAll(socket)
      .then((to) => (latest = latest.then(() => answerTo(() => backUp(to)))))
      .then((answer) => socket.end(JSON.stringify(answer)));
  });
  const path = socketOf(folder);
  // The folder is locked, so no other server uses it.
  rmSync(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  await chmod(path, PRIVATE);
  return () => void server.close();
}

async function answerTo(work: () => Promise<BackedUp>): Promise<Answer> {
  try {
    return { ok: true, value: await work() };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) };
  }
}

/** Asks the server of a folder for a backup. Undefined: none is running. */
export async function askForBackup(folder: string, to: string): Promise<BackedUp | undefined> {
  const socket = connect({ path: socketOf(folder), allowHalfOpen: true });
  const connected = new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  });
  if (!(await connected)) return undefined;
  socket.end(to);
  // A server that is killed ends the connection with an error or without one.
  const text = await readAll(socket).catch(() => "");
  if (text === "") throw new Error("the server ended before the backup was complete");
  const answer = JSON.parse(text) as Answer;
  if (!answer.ok) throw new Error(answer.error);
  return answer.value;
}

async function readAll(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > MAX_REQUEST_BYTES) socket.destroy();
  }
  return text;
}
