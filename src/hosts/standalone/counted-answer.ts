import { ServerResponse, type IncomingMessage } from "node:http";
import type { MessageBudget } from "../grpc/message-budget.ts";
import { isShared } from "../../coordinator/api/encoded-once.ts";

/** Longer texts are encoded at once. Node would keep the text beside its bytes. */
const LONG_TEXT = 16_384;

/**
 * Makes the class of answers that count in `unread` until their callers have taken them. If they are too many
 * bytes, the connections with the oldest answers are closed. Documents that all answers share don't count, so
 * callers without a key can't bring that about.
 */
export const countedIn = (unread: MessageBudget): typeof ServerResponse =>
  class CountedAnswer<Request extends IncomingMessage> extends ServerResponse<Request> {
    bytes = 0;
    #isFollowed = false;

    // `sendAnswer` calls `write` and `end` in no other way.
    override write(chunk: unknown): boolean {
      const isTaken = super.write(chunk);
      if (!isTaken && !isShared(chunk)) this.#count();
      return isTaken;
    }

    override end(chunk?: unknown): this {
      super.end(typeof chunk === "string" && chunk.length > LONG_TEXT ? Buffer.from(chunk) : chunk);
      if (chunk !== undefined && this.writableLength > 0) this.#count();
      return this;
    }

    evict(): void {
      this.destroy();
    }

    #count(): void {
      const leave = (): void => unread.remove(this);
      if (!this.#isFollowed) this.on("drain", leave).once("close", leave);
      this.#isFollowed = true;
      leave();
      this.bytes = 0;
      unread.add(this);
      unread.grow(this, this.writableLength);
    }
  };
