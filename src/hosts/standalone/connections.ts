import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { maxOpenFiles } from "../workerd/open-files.ts";

/** A connection that is ready for requests. */
interface Connection {
  /**
   * The requests that are not answered, in their order, by their answers. Only the first is carried out.
   * The others get nothing before its answer.
   */
  answers: Map<ServerResponse, () => void>;
  /** The last request. Its body may be incomplete. */
  last: IncomingMessage | undefined;
  /** Nothing more is parsed or carried out. */
  isEnding: boolean;
}

/** Programs that send requests without waiting for answers (pipelining) have some ten of them under way. */
const MAX_PIPELINED = 32;

/** How long the rest of what a caller sends is read after the last answer. */
const LINGER_MS = 1_000;

/**
 * The connections, with their requests. Node itself closes those that have had a request, but a stop would
 * wait for one that has not sent any yet.
 */
export class Connections {
  readonly #accepted = new Set<Socket>();
  readonly #ready = new Map<Socket, Connection>();
  #isClosing = false;

  accepted(socket: Socket): void {
    this.#accepted.add(socket);
    socket.once("close", () => this.#accepted.delete(socket));
  }

  opened(socket: Socket): void {
    const connection: Connection = { answers: new Map(), last: undefined, isEnding: false };
    this.#ready.set(socket, connection);
    socket.once("close", () => this.#ready.delete(socket));
    // Node reads on when a request is answered. Requests are only read as they are answered.
    socket.on("resume", () => {
      if (connection.answers.size > 1 && socket.writable) stopReading(socket);
    });
    // Node calls it after the last answer. If the caller were still sending, the system would reset the
    // connection, and the answer could be lost.
    socket.destroySoon = () => this.end(socket);
    if (this.#isClosing) socket.destroy();
  }

  /** Calls `carryOut` once the caller has taken the answers to its earlier requests. */
  began(incoming: IncomingMessage, answer: ServerResponse, carryOut: () => void): void {
    const { socket } = incoming;
    const connection = this.#ready.get(socket);
    if (connection === undefined || connection.isEnding) return;
    const { answers } = connection;
    answers.set(answer, carryOut);
    connection.last = incoming;
    answer.once("close", () => {
      answers.delete(answer);
      if (!socket.writable) return;
      if (connection.isEnding && answers.size === 0) this.end(socket);
      if (answers.size <= 1) socket.resume();
      const [next] = answers.values();
      next?.();
    });
    if (answers.size === 1) carryOut();
    else stopReading(socket);
  }

  /** Whether no other request of the connection is to be read. */
  isFull(socket: Socket): boolean {
    const { answers } = this.#ready.get(socket) ?? {};
    return answers !== undefined && answers.size >= MAX_PIPELINED;
  }

  /** Closes a connection that has been silent if it is idle, or if its caller takes no more of an answer. */
  silent(socket: Socket): void {
    const pending = this.#ready.get(socket)?.answers.size ?? 0;
    if (pending === 0 || socket.writableLength > 0) socket.destroy();
  }

  /**
   * Carries out nothing more of a connection that has sent something wrong, and ends it after the pending
   * answers. Returns true if there are none, so that the caller is to be told.
   */
  fail(socket: Socket): boolean {
    const connection = this.#ready.get(socket);
    // Node reports it again for each further piece of data.
    if (connection?.isEnding === true) return false;
    // Nothing can be sent, or nothing has arrived.
    if (connection === undefined || !socket.writable || socket.bytesRead === 0) {
      socket.destroy();
      return false;
    }
    connection.isEnding = true;
    const { last, answers } = connection;
    const isBody = last !== undefined && !last.complete;
    if (answers.size === 0) {
      // What is wrong is the rest of a request that has its answer.
      if (isBody) this.end(socket);
      return !isBody;
    }
    announceCloseOfLast(answers);
    if (isBody) cutShort(last);
    return false;
  }

  /** Sends a last text, and closes the connection when the caller does, or after a while. */
  end(socket: Socket, text = ""): void {
    const connection = this.#ready.get(socket);
    if (connection === undefined || !socket.writable) return;
    connection.isEnding = true;
    if (connection.last !== undefined) discardRest(connection.last);
    socket.end(text);
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once("close", () => clearTimeout(timer));
  }

  closeAll(): void {
    for (const socket of this.#accepted) socket.destroy();
  }

  /** Closes the connections that have no request now, and the others when they have none any more. */
  closeIdle(): void {
    this.#isClosing = true;
    for (const [socket, connection] of this.#ready) {
      // Its pending requests are answered, and no other is carried out.
      connection.isEnding = true;
      announceCloseOfLast(connection.answers);
      if (connection.answers.size === 0) socket.destroy();
    }
  }
}

/**
 * At the end of each request, Node goes on reading, but the stream may still be marked as paused. Then
 * `pause` does nothing. The event makes Node's HTTP server stop reading in any case.
 */
function stopReading(socket: Socket): void {
  socket.pause();
  socket.emit("pause");
}

/** Tells the caller not to send another request on the connection. */
export function announceClose(answer: ServerResponse): void {
  if (!answer.headersSent) answer.shouldKeepAlive = false;
}

/** The answers before it are sent, too. */
function announceCloseOfLast(answers: Connection["answers"]): void {
  const last = [...answers.keys()].at(-1);
  if (last !== undefined) announceClose(last);
}

/** Ends a body that cannot be parsed further, so that the application doesn't wait for the rest of it. */
function cutShort(incoming: IncomingMessage): void {
  // Node would destroy the connection as well, but it is needed for the answer.
  Object.assign(incoming, { _destroy: endStream });
  incoming.on("error", () => {});
  incoming.destroy(new Error("the body cannot be parsed"));
}

const endStream: Readable["_destroy"] = (error, done) => done(error);

/** Reads a body without keeping it. Otherwise the connection would stop reading. */
function discardRest(incoming: IncomingMessage): void {
  incoming.removeAllListeners("data");
  incoming.removeAllListeners("readable");
  incoming.resume();
}

/** Each connection takes a file descriptor and some memory. */
export const MAX_CONNECTIONS = 4_096;

/** For the process itself, the database, its checkpoints, and a backup. */
const OTHER_FILES = 128;

/**
 * Returns how many connections leave enough file descriptors for the rest. Without the limit, idle
 * connections could use up all of them, and then a checkpoint could open no file and would end the process.
 */
export function connectionLimit(openFiles = maxOpenFiles()): number {
  const left = openFiles - Math.min(OTHER_FILES, Math.floor(openFiles / 2));
  return Math.max(1, Math.min(MAX_CONNECTIONS, left));
}
