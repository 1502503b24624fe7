import { decodeBase64Url, decodeUtf8, encodeBase64Url } from "../auth/base64url.ts";
import { Hmac, type Secrets } from "../auth/secrets.ts";
import { ok, refused, type Result } from "../kernel/refusal.ts";

/** The call for which a token is valid: route, parameters, filters and principal. */
export type TokenScope = readonly unknown[];

const PURPOSE = "leasehold page token 1";
const SIGNATURE_BYTES = 32;
const MAX_TOKEN_LENGTH = 4_096;

/** Makes and reads opaque page tokens: a position, signed together with the scope in which it is valid. */
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

  /**
   * The position that was given to `make`, or undefined for the first page. Refuses every other token with
   * `refusal`.
   */
  async read<Position>(
    scope: TokenScope,
    token: string | undefined,
    refusal: () => Result<never> = badToken,
  ): Promise<Result<Position | undefined>> {
    if (token === undefined || token === "") return ok(undefined);
    const bytes = token.length > MAX_TOKEN_LENGTH ? undefined : decodeBase64Url(token);
    const text = bytes && decodeUtf8(bytes.subarray(SIGNATURE_BYTES));
    if (bytes === undefined || text === undefined || bytes.length <= SIGNATURE_BYTES) return refusal();
    for (const hmac of this.#accepted) {
      // Only signed text is parsed, so the position is what `make` was given for this scope.
      if (await hmac.verify(signedText(scope, text), bytes.slice(0, SIGNATURE_BYTES)))
        return ok(JSON.parse(text) as Position);
    }
    return refusal();
  }
}

const signedText = (scope: TokenScope, position: string): string => JSON.stringify([scope, position]);

const badToken = (): Result<never> =>
  refused(
    "INVALID_ARGUMENT",
    "`page_token` doesn't belong to this call; send the `next_page_token` of the previous page, with the " +
      "same path, filters, and a key of the same role and cell",
    {
      field: "page_token",
    },
  );
