import { FORMAT } from "../kernel/formats.ts";
import type { Envelope } from "../kernel/messages.ts";
import type { Answer, Call, Interceptor } from "../objects/interceptor.ts";

/**
 * The format in force, as an isolate or a run of the cron knows it from answers. 0 until the first one.
 * Stamps all messages (M9).
 */
export class KnownFormat implements Interceptor {
  readonly #speaks: number;
  #format = 0;

  /** @param speaks the newest format that the code speaks. Only the simulator gives it. */
  constructor(speaks = FORMAT) {
    this.#speaks = speaks;
  }

  get format(): number {
    return this.#format;
  }

  before(_: Call, message: Envelope): Envelope {
    return { ...message, speaks: this.#speaks, format: this.#format } as Envelope;
  }

  after(_: Call, answer: Answer | undefined): void {
    this.#format = Math.max(this.#format, answer?.format ?? 0);
  }
}
