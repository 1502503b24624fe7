import { FORMAT } from "../core/formats.ts";
import type { Envelope } from "../core/messages.ts";
import type { Answer, Call, Interceptor } from "./interceptor.ts";

/**
 * The format in force, as an isolate or a run of the cron knows it from answers. 0 until the first one.
 * Stamps all messages (M9).
 */
export class KnownFormat implements Interceptor {
  #format = 0;

  get format(): number {
    return this.#format;
  }

  before(_: Call, message: Envelope): Envelope {
    return { ...message, speaks: FORMAT, format: this.#format } as Envelope;
  }

  after(_: Call, answer: Answer | undefined): void {
    this.#format = Math.max(this.#format, answer?.format ?? 0);
  }
}
