import { decodeBase64Url, decodeUtf8, encodeBase64Url } from "../auth/base64url.ts";
import { Hmac } from "../auth/hmac.ts";
import type { Secrets } from "../auth/secrets.ts";
import { ok, refused, type Result } from "../core/refusal.ts";

/** What a token is good for: one route, one query, one principal. */
export type TokenScope = readonly unknown[];

const PURPOSE = "leasehold page token 1";
const SIGNATURE_BYTES = 32;
const MAX_TOKEN_LENGTH = 4_096;

/** Opaque page tokens: where to go on, signed together with what they are good for. */
export class PageTokens {
  readonly #current: Hmac;
  readonly #accepted: readonly Hmac[];

  constructor({ current, previous }: Secrets) {
    this.#current = new Hmac(current, PURPOSE);
    this.#accepted = previous === undefined ? [this.#current] : [this.#current, new Hmac(previous, PURPOSE)];
  }

  async make(scope: TokenScope, position: unknown): Promise<string> {
    const text = JSON.stringify(position);
    const payload = new TextEncoder().encode(text);
    const bytes = new Uint8Array(SIGNATURE_BYTES + payload.length);
    bytes.set(await this.#current.sign(signedText(scope, text)));
    bytes.set(payload, SIGNATURE_BYTES);
    return encodeBase64Url(bytes);
  }

  /** The position, as it was given to `make`; undefined for the first page. */
  async read<Position>(scope: TokenScope, token: string | undefined): Promise<Result<Position | undefined>> {
    if (token === undefined || token === "") return ok(undefined);
    const bytes = token.length > MAX_TOKEN_LENGTH ? undefined : decodeBase64Url(token);
    const text = bytes && decodeUtf8(bytes.subarray(SIGNATURE_BYTES));
    if (bytes === undefined || text === undefined || bytes.length <= SIGNATURE_BYTES) return badToken();
    for (const hmac of this.#accepted) {
      // Only what was signed here is parsed, so it is what `make` was given for this scope.
      if (await hmac.verify(signedText(scope, text), bytes.slice(0, SIGNATURE_BYTES)))
        return ok(JSON.parse(text) as Position);
    }
    return badToken();
  }
}

const signedText = (scope: TokenScope, position: string): string => JSON.stringify([scope, position]);

const badToken = (): Result<never> =>
  refused(
    "INVALID_ARGUMENT",
    "`page_token` does not belong to this call: send the token of the page before, with the same query and key",
    {
      field: "page_token",
    },
  );
