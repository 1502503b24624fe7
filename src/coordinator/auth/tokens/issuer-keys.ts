import type { Identities, Issuer } from "../../capabilities/identities/identities.ts";
import type { Clock, Log } from "../../kernel/ports.ts";
import { readKeys, type PublicKey } from "./public-keys.ts";
import { logFailedRead, RemoteKeys } from "./remote-keys.ts";

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
