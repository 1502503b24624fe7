import { ask } from "../../core/ask.ts";
import type { Clock } from "../../core/ports.ts";
import { ok, refused, type Result } from "../../core/refusal.ts";
import { jwksUrlFault } from "./jwks-url.ts";
import { readKeys, type PublicKey } from "./public-keys.ts";

type Keys = readonly PublicKey[];

/** Issuers publish a new key some time before they use it. */
const FRESH_MS = 600_000;
/** A token can name any key, so keys are read again for an unknown one only this often. */
const READ_AGAIN_MS = 30_000;
/** After a failed read, nothing is read for this time. */
const AFTER_FAILURE_MS = 10_000;
/** How long known keys are used while they can't be read. */
const KEPT_MS = 86_400_000;
const READ_TIMEOUT_MS = 3_000;
const MAX_KEYS_BYTES = 65_536;

/** A read of the keys that is running. */
interface Reading {
  startedAtMs: number;
  keys: Promise<Result<Keys>>;
}

/** The keys at one URL. An isolate has one such object per URL. */
export class RemoteKeys {
  readonly #url: string;
  readonly #clock: Pick<Clock, "after">;
  #known: { keys: Keys; readAtMs: number } | undefined;
  #reading: Reading | undefined;
  #failedAtMs: number | undefined;

  constructor(url: string, clock: Pick<Clock, "after">) {
    this.#url = url;
    this.#clock = clock;
  }

  /** Returns the keys that are wanted, none if the issuer has none, and undefined if that can't be known. */
  async get(isWanted: (key: PublicKey) => boolean, nowMs: number): Promise<Keys | undefined> {
    const fresh = this.#knownFor(isWanted, nowMs, FRESH_MS, READ_AGAIN_MS);
    if (fresh !== undefined) return fresh;
    const read = await this.#read(nowMs);
    return read.ok ? read.value.filter(isWanted) : this.#knownFor(isWanted, nowMs, KEPT_MS, 0);
  }

  /** Returns what was read within this time: one for keys that are known, and one for none. */
  #knownFor(isWanted: (key: PublicKey) => boolean, nowMs: number, someMs: number, noneMs: number) {
    if (this.#known === undefined) return undefined;
    const { keys, readAtMs } = this.#known;
    const wanted = keys.filter(isWanted);
    return isWithin(wanted.length > 0 ? someMs : noneMs, readAtMs, nowMs) ? wanted : undefined;
  }

  async #read(nowMs: number): Promise<Result<Keys>> {
    const running = this.#reading;
    if (running !== undefined && isWithin(READ_TIMEOUT_MS, running.startedAtMs, nowMs)) {
      // The read belongs to another request, and never ends if that is cancelled. So it needs its own timer.
      const answer = await ask(this.#clock, READ_TIMEOUT_MS, () => running.keys);
      return answer.kind === "ok" ? ok(answer.value) : UNREADABLE;
    }
    if (this.#failedAtMs !== undefined && isWithin(AFTER_FAILURE_MS, this.#failedAtMs, nowMs))
      return UNREADABLE;
    const reading: Reading = { startedAtMs: nowMs, keys: this.#fetch() };
    this.#reading = reading;
    const read = await reading.keys;
    // A later read that has replaced this one knows better.
    if (this.#reading === reading) this.#take(read, nowMs);
    return read;
  }

  #take(read: Result<Keys>, startedAtMs: number): void {
    this.#reading = undefined;
    this.#failedAtMs = read.ok ? undefined : startedAtMs;
    if (read.ok) this.#known = { keys: read.value, readAtMs: startedAtMs };
    else if (read === WITHDRAWN) this.#known = undefined;
  }

  async #fetch(): Promise<Result<Keys>> {
    const controller = new AbortController();
    const cancel = this.#clock.after(READ_TIMEOUT_MS, () => controller.abort());
    try {
      const entries = entriesOf(await fetchJson(this.#url, controller.signal));
      if (entries === undefined) return UNREADABLE;
      const keys = readKeys(entries, this.#known?.keys);
      return keys.length === 0 ? WITHDRAWN : ok(keys);
    } catch {
      return UNREADABLE;
    } finally {
      cancel();
    }
  }
}

const UNREADABLE = refused("UNAVAILABLE", "the keys can't be read");
/** The issuer answers, but has no key that can be used. Its former keys are no longer valid. */
const WITHDRAWN = refused("UNAVAILABLE", "there are no keys");

/** A time that is far in the future is not within it: the clock was set back since. */
const isWithin = (lengthMs: number, sinceMs: number, nowMs: number): boolean =>
  Math.abs(nowMs - sinceMs) < lengthMs;

function entriesOf(keySet: unknown): readonly unknown[] | undefined {
  const { keys } = (keySet ?? {}) as { keys?: unknown };
  return Array.isArray(keys) ? (keys as unknown[]) : undefined;
}

async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const fault = jwksUrlFault(url);
  if (fault !== undefined) throw new Error(fault);
  const headers = { accept: "application/json, application/jwk-set+json" };
  const answer = await fetch(url, { redirect: "manual", signal, headers });
  const { body, ok: isOk } = answer;
  if (!isOk || body === null) {
    await body?.cancel();
    throw new Error(`HTTP ${answer.status}`);
  }
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let text = "";
  let sizeBytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_KEYS_BYTES) throw new Error("the answer is too large");
    text += decoder.decode(chunk, { stream: true });
  }
  return JSON.parse(text + decoder.decode());
}
