import { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

interface Parsed extends IncomingMessage {
  /** Tells Node's parser that what follows is no HTTP. */
  upgrade: boolean;
  methodOfRequest: string | null;
}

/**
 * Makes the class of requests of a server. Node parses all requests that have arrived in one chunk of 64 KiB,
 * which are thousands, before it can pause a connection. So the first request that is too many becomes a
 * CONNECT, because the parser reads nothing that follows one.
 */
export function boundedBy(isFull: (socket: Socket) => boolean): typeof IncomingMessage {
  class BoundedRequest extends IncomingMessage {}
  Object.defineProperty(BoundedRequest.prototype, "method", {
    get(this: Parsed): string | null {
      return this.methodOfRequest;
    },
    // The constructor sets null, and the parser sets the method once the headers are complete.
    set(this: Parsed, method: string | null) {
      const isTooMany = method !== null && isFull(this.socket);
      if (isTooMany) this.upgrade = true;
      this.methodOfRequest = isTooMany ? "CONNECT" : method;
    },
  });
  return BoundedRequest;
}
