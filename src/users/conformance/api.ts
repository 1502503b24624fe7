/** HTTP calls as they are: no checks of what is sent, and no SDK. */
/** The part of the platform's `fetch` that the suite needs. */
export type WebFetch = (
  url: string,
  init: {
    method: string;
    headers: Record<string, string>;
    signal: AbortSignal;
    redirect: "manual";
    body?: string | Uint8Array<ArrayBuffer>;
  },
) => Promise<{
  status: number;
  headers: { get(name: string): string | null };
  arrayBuffer(): Promise<ArrayBuffer>;
}>;

/** The two cells of a run. */
export type CellName = "cell" | "other";

/** Who makes a call. `nobody` sends no key. */
export type Who = CellName | "router" | "operator" | "nobody";

export type Keys = Readonly<Partial<Record<Exclude<Who, "nobody">, string>>>;

export interface Sent {
  who?: Who;
  /** The body, sent as JSON. */
  body?: unknown;
  /** The body, sent unchanged. */
  raw?: string | Uint8Array<ArrayBuffer>;
  headers?: Readonly<Record<string, string>>;
  /** Ends the call early, as a client that gives up. */
  signal?: AbortSignal;
  /** Sends the call once, also if the answer says that it may be repeated. */
  isOnce?: boolean;
}

export interface Received {
  method: string;
  path: string;
  status: number;
  header: (name: string) => string | null;
  bytes: Uint8Array<ArrayBuffer>;
  text: string;
  /** Undefined: the body is no JSON. */
  json: unknown;
  /** The answer before was that the call may be repeated. So a begin may have been granted by then. */
  isRepeated: boolean;
}

/** A call without an answer. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

export interface ApiOptions {
  url: string;
  fetch: WebFetch;
  keys: Keys;
  signal: AbortSignal;
  /** The calls under way at a time. */
  calls: Slots;
}

/** Longer than the deadlines of all calls of the API. */
const TIMEOUT_MS = 30_000;

const ATTEMPTS = 4;
/** Longer than a coordinator asks for when it is busy. */
const MAX_WAIT_MS = 15_000;

/** Answers about load, which say nothing about a rule. */
const BUSY: ReadonlySet<number> = new Set([429, 503, 504]);

export class Api {
  readonly #options: ApiOptions;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  has(who: Who): boolean {
    return who === "nobody" || this.#options.keys[who] !== undefined;
  }

  /**
   * Sends a request, and repeats it if the answer asks for that.
   *
   * @throws {NoAnswerError} when there was no answer
   */
  async send(method: string, path: string, sent: Sent = {}): Promise<Received> {
    for (let attempt = 1; ; attempt += 1) {
      const received = await this.#sendOnce(method, path, sent);
      if (attempt === ATTEMPTS || sent.isOnce === true || !BUSY.has(received.status))
        return { ...received, isRepeated: attempt > 1 };
      const afterMs = Number(received.header("retry-after") ?? 1) * 1_000;
      await pause(
        Math.min(Number.isFinite(afterMs) ? afterMs : MAX_WAIT_MS, MAX_WAIT_MS),
        this.#options.signal,
      );
    }
  }

  async #sendOnce(
    method: string,
    path: string,
    { who = "cell", body, raw, headers = {}, signal }: Sent,
  ): Promise<Omit<Received, "isRepeated">> {
    const { url, fetch, keys, calls } = this.#options;
    const key = who === "nobody" ? undefined : keys[who];
    if (who !== "nobody" && key === undefined) throw new Error(`there is no key of the role ${who}`);
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    return calls.use(async () => {
      const signals = [this.#options.signal, AbortSignal.timeout(TIMEOUT_MS)];
      if (signal !== undefined) signals.push(signal);
      try {
        const response = await fetch(url + path, {
          method,
          headers: {
            accept: "application/json",
            ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
            ...(payload === undefined ? {} : { "content-type": "application/json" }),
            ...headers,
          },
          signal: AbortSignal.any(signals),
          redirect: "manual",
          ...(payload === undefined ? {} : { body: payload }),
        });
        const bytes = new Uint8Array(await response.arrayBuffer());
        const text = new TextDecoder().decode(bytes);
        const header = (name: string): string | null => response.headers.get(name);
        return { method, path, status: response.status, header, bytes, text, json: jsonOf(text) };
      } catch (error) {
        this.#options.signal.throwIfAborted();
        throw new NoAnswerError(`${method} ${path} got no answer: ${reasonOf(error)}`);
      }
    });
  }
}

const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
  return `${error instanceof Error ? error.message : String(error)}${cause}`;
};

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Lets a number of tasks run at a time. The others wait in the order of their calls. */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async use<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resume) => this.#waiting.push(resume));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** Waits for some time. Rejects when `signal` aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
  });
