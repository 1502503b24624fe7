import { v4 as newUuid } from "uuid";
import { problemAnswer, type Failure } from "../../coordinator/api/problem.ts";
import { responseOf } from "../../coordinator/api/web-request.ts";
import type { TestClock } from "./clock.ts";
import { addressOf, type Fault, type FaultRegistry, type ObservedCall, type Operation } from "./faults.ts";

/** Carries out a request, as the Worker does. */
type Dispatch = (request: Request) => Promise<Response>;

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** The network between cells and the coordinator, as a `fetch` with faults. */
export class Network {
  readonly #origin: string;
  readonly #dispatch: Dispatch;
  readonly #faults: FaultRegistry;
  readonly #clock: TestClock;
  /** Functions that reject the calls under way. */
  readonly #underWay = new Set<(reason: unknown) => void>();
  #isClosed = false;

  constructor(origin: string, dispatch: Dispatch, faults: FaultRegistry, clock: TestClock) {
    this.#origin = origin;
    this.#dispatch = dispatch;
    this.#faults = faults;
    this.#clock = clock;
  }

  async fetch(input: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
    const request = new Request(input, init);
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    if (this.#isClosed) throw closedError();
    const { origin, pathname, search } = new URL(request.url);
    if (origin !== this.#origin)
      throw fetchFailed(
        `only ${this.#origin} can be reached with the fetch of a test coordinator, and not ${origin}`,
      );
    const call: Writable<ObservedCall> = {
      ...addressOf(request.method, request.url),
      method: request.method,
      path: pathname + search,
      status: null,
    };
    this.#faults.record(call);
    const fault = this.#faults.take(call);
    const response = await this.#whileOpen(signal, (stop) => this.#applyFault(fault, request, call, stop));
    call.status = response.status;
    return response.body === null ? response : new Response(this.#wrapBody(response.body, signal), response);
  }

  /**
   * Ends a body when the caller aborts or the network closes. Reads from the coordinator only what the caller
   * reads.
   */
  #wrapBody(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await this.#whileOpen(signal, () => reader.read());
            if (done) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            controller.error(error);
            await reader.cancel(error);
          }
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  /** Rejects the calls under way, and all later ones. */
  close(): void {
    this.#isClosed = true;
    for (const end of this.#underWay) end(fetchFailed("the test coordinator was closed"));
  }

  /**
   * Runs `work`, and rejects when the caller aborts or the network closes. `stop` then tells `work` that
   * nobody waits for it; what it has begun still ends.
   */
  #whileOpen<T>(signal: AbortSignal | undefined, work: (stop: AbortSignal) => Promise<T>): Promise<T> {
    const stopping = new AbortController();
    return new Promise<T>((resolve, reject) => {
      const end = (reason: unknown): void => {
        stopping.abort();
        reject(reason);
      };
      const abort = (): void => end(signal?.reason);
      const cleanUp = (): void => {
        this.#underWay.delete(end);
        signal?.removeEventListener("abort", abort);
      };
      if (this.#isClosed) return end(closedError());
      if (signal?.aborted === true) return abort();
      this.#underWay.add(end);
      signal?.addEventListener("abort", abort);
      stopping.signal.addEventListener("abort", cleanUp);
      work(stopping.signal).then(resolve, reject).finally(cleanUp);
    });
  }

  async #applyFault(
    fault: Fault | undefined,
    request: Request,
    call: ObservedCall,
    stop: AbortSignal,
  ): Promise<Response> {
    switch (fault?.kind) {
      case undefined:
        return this.#dispatch(request);
      case "lose_request":
        throw fetchFailed("the request was lost");
      case "lose_answer":
        await this.#dispatch(request);
        throw fetchFailed("the answer was lost");
      case "hang":
        if (fault.carriedOut) await this.#dispatch(request);
        return new Promise<never>(() => {});
      case "unavailable":
        if (fault.carriedOut === true) await this.#dispatch(request);
        return unavailable(call);
      case "delay":
        await this.#pause(fault.ms, stop);
        return this.#dispatch(request);
    }
  }

  /** Never resolves after the caller has aborted, because the request was not sent. */
  #pause(ms: number, stop: AbortSignal): Promise<void> {
    return new Promise((resume) => {
      const cancel = this.#clock.after(ms, resume);
      stop.addEventListener("abort", cancel);
    });
  }
}

/** The error of a `fetch` whose connection broke. The cause names the fault. */
const fetchFailed = (cause: string): TypeError => new TypeError("fetch failed", { cause: new Error(cause) });

const closedError = (): TypeError => fetchFailed("the test coordinator is closed");

/**
 * The advice of the coordinator when a ledger does not answer, as in src/coordinator/api/handlers/leases.ts.
 */
const advice: Partial<Record<Operation, string>> = {
  begin: ": the outcome is unknown; repeat the call with the same lease id",
  commit: ": repeat the call; the first decision wins and is final",
  rollback: ": repeat the call; the first decision wins and is final",
};

function unavailable({ operation, uuid }: ObservedCall): Response {
  const requestId = newUuid();
  const detail = `the cell's ledger cannot be reached${advice[operation] ?? ""}`;
  const leaseUuid = operation === "begin" && uuid !== null ? { leaseUuid: uuid } : {};
  const failure: Failure = { code: "UNAVAILABLE", detail, retryAfterMs: 1_000, ...leaseUuid };
  return responseOf(problemAnswer(failure, requestId));
}
