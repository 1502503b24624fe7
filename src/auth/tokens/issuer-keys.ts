import type { Identities, Issuer } from "../../core/identities/identities.ts";
import type { Clock } from "../../core/ports.ts";
import { readKeys, type PublicKey } from "./public-keys.ts";
import { RemoteKeys } from "./remote-keys.ts";

/** The keys of the issuers that the identities name. */
export class IssuerKeys {
  readonly #clock: Pick<Clock, "after">;
  #identities: Identities | undefined;
  /** By URL: those that the identities name and that were needed. */
  #remote = new Map<string, RemoteKeys>();
  readonly #inline = new WeakMap<Issuer, readonly PublicKey[]>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
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
    const keys = this.#remote.get(url) ?? new RemoteKeys(url, this.#clock);
    this.#remote.set(url, keys);
    return keys;
  }

  #keepOnly(identities: Identities): void {
    const urls = new Set(identities.issuers.map(({ jwksUrl }) => jwksUrl));
    this.#remote = new Map([...this.#remote].filter(([url]) => urls.has(url)));
    this.#identities = identities;
  }
}
