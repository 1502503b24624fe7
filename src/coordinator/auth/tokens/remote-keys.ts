import { ask } from "../../kernel/ask.ts";
import type { Clock, Log } from "../../kernel/ports.ts";
import { ok, refused, type Result } from "../../kernel/refusal.ts";
import { jwksUrlFault } from "./forms.ts";
import { readKeys, type PublicKey } from "./public-keys.ts";
import type { Identities, Issuer } from "../../capabilities/identities/identities.ts";

type Keys = readonly PublicKey[];

/** A read that has failed. */
export interface FailedRead {
  /** A text of this module. It has nothing of the answer, and nothing of the URL. */
  error: string;
  /** How long the keys that are known are still used. 0: none are. */
  keysUsableMs: number;
}

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

/** Says in the log that the keys of an issuer could not be read. */
export const logFailedRead = (log: Log, issuer: string, { error, keysUsableMs }: FailedRead): void =>
  log("issuer_keys_failed", { issuer, error, keys_usable_s: Math.floor(keysUsableMs / 1_000) });

/** A read of the keys that is running. */
interface Reading {
  startedAtMs: number;
  keys: Promise<Result<Keys>>;
}

/** The keys at one URL. An isolate has one such object per URL. */
export class RemoteKeys {
  readonly #url: string;
  readonly #clock: Pick<Clock, "after">;
  readonly #onFailure: (failure: FailedRead) => void;
  #known: { keys: Keys; readAtMs: number } | undefined;
  #reading: Reading | undefined;
  #failedAtMs: number | undefined;

  /** @param onFailure is called once for each failed read, unless its request was cancelled */
  constructor(url: string, clock: Pick<Clock, "after">, onFailure: (failure: FailedRead) => void) {
    this.#url = url;
    this.#clock = clock;
    this.#onFailure = onFailure;
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
    if (!read.ok) this.#onFailure({ error: read.refusal.detail, keysUsableMs: this.#usableMs(nowMs) });
    return read;
  }

  #usableMs(nowMs: number): number {
    if (this.#known === undefined) return 0;
    return Math.max(0, KEPT_MS - Math.abs(nowMs - this.#known.readAtMs));
  }

  #take(read: Result<Keys>, startedAtMs: number): void {
    this.#reading = undefined;
    this.#failedAtMs = read.ok ? undefined : startedAtMs;
    if (read.ok) this.#known = { keys: read.value, readAtMs: startedAtMs };
    else if (read === NO_KEYS) this.#known = undefined;
  }

  async #fetch(): Promise<Result<Keys>> {
    const controller = new AbortController();
    const cancel = this.#clock.after(READ_TIMEOUT_MS, () => controller.abort());
    try {
      const text = await fetchText(this.#url, controller.signal);
      if (!text.ok) return text;
      const entries = entriesOf(text.value);
      if (entries === undefined) return failed("the answer is not a JWK set");
      const keys = readKeys(entries, this.#known?.keys);
      return keys.length === 0 ? NO_KEYS : ok(keys);
    } catch (error) {
      return failed(
        controller.signal.aborted ? "no complete answer within 3 s" : `no complete answer${codeOf(error)}`,
      );
    } finally {
      cancel();
    }
  }
}

const failed = (why: string) => refused("UNAVAILABLE", why);

const UNREADABLE = failed("the last read has failed, or has not ended");
/** The issuer answers, but has no key that can be used. Its former keys are no longer valid. */
const NO_KEYS = failed("the issuer publishes no key that can be used, so its former keys no longer count");

/** The code of an error of the network in Node, such as `ECONNREFUSED`. Messages could quote the URL. */
function codeOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: { code?: unknown } };
  return typeof cause?.code === "string" ? `: ${cause.code}` : "";
}

/** A time that is far in the future is not within it: the clock was set back since. */
const isWithin = (lengthMs: number, sinceMs: number, nowMs: number): boolean =>
  Math.abs(nowMs - sinceMs) < lengthMs;

function entriesOf(text: Uint8Array): readonly unknown[] | undefined {
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
    const keySet: unknown = JSON.parse(decoder.decode(text));
    const { keys } = (keySet ?? {}) as { keys?: unknown };
    return Array.isArray(keys) ? (keys as unknown[]) : undefined;
  } catch {
    return undefined;
  }
}

async function fetchText(url: string, signal: AbortSignal): Promise<Result<Uint8Array>> {
  const fault = jwksUrlFault(url);
  if (fault !== undefined) return failed(`the URL ${fault}`);
  const headers = { accept: "application/json, application/jwk-set+json" };
  const answer = await fetch(url, { redirect: "manual", signal, headers });
  const { body, ok: isOk } = answer;
  if (!isOk || body === null) {
    await body?.cancel();
    return failed(`HTTP status ${answer.status}`);
  }
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_KEYS_BYTES) return failed("the answer is larger than 64 KiB");
    chunks.push(chunk);
  }
  return ok(new Uint8Array(await new Blob(chunks).arrayBuffer()));
}

/** The keys of the issuers that the identities name. */
export class IssuerKeys {
  readonly #clock: Pick<Clock, "after">;
  readonly #log: Log;
  #identities: Identities | undefined;
  /** By URL: those that the identities name and that were needed. */
  #remote = new Map<string, RemoteKeys>();
  readonly #inline = new WeakMap<Issuer, readonly PublicKey[]>();

  constructor(clock: Pick<Clock, "after">, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Returns the keys that are wanted, none if the issuer has none, and undefined if that can't be known. */
  async get(
    issuer: Issuer,
    identities: Identities,
    isWanted: (key: PublicKey) => boolean,
    nowMs: number,
  ): Promise<readonly PublicKey[] | undefined> {
    const { jwksUrl } = issuer;
    if (jwksUrl !== null) return this.#remoteAt(jwksUrl, identities).get(isWanted, nowMs);
    const keys = this.#inline.get(issuer) ?? readKeys(issuer.keys ?? []);
    this.#inline.set(issuer, keys);
    return keys.filter(isWanted);
  }

  #remoteAt(url: string, identities: Identities): RemoteKeys {
    if (this.#identities !== identities) this.#keepOnly(identities);
    const keys = this.#remote.get(url) ?? this.#newRemote(url);
    this.#remote.set(url, keys);
    return keys;
  }

  #newRemote(url: string): RemoteKeys {
    return new RemoteKeys(url, this.#clock, (failure) => {
      // Several issuers may have the same keys, and none may be left when a read ends.
      for (const { name, jwksUrl } of this.#identities?.issuers ?? [])
        if (jwksUrl === url) logFailedRead(this.#log, name, failure);
    });
  }

  #keepOnly(identities: Identities): void {
    const urls = new Set(identities.issuers.map(({ jwksUrl }) => jwksUrl));
    this.#remote = new Map([...this.#remote].filter(([url]) => urls.has(url)));
    this.#identities = identities;
  }
}
