const WEB_TOKEN = /^(?!lhk_)[\w-]+\.[\w-]+\.[\w-]*$/;

/** Whether a bearer has the form of a JSON web token, and not of a key. Its parts may be anything. */
export const isWebToken = (bearer: string): boolean => WEB_TOKEN.test(bearer);

/** The kind of key of each algorithm that is accepted. None of them has a secret to share with the issuer. */
const kinds = {
  RS256: "RSA",
  RS384: "RSA",
  RS512: "RSA",
  PS256: "RSA",
  PS384: "RSA",
  PS512: "RSA",
  ES256: "P-256",
  ES384: "P-384",
  ES512: "P-521",
  EdDSA: "Ed25519",
  Ed25519: "Ed25519",
} as const;

type Algorithm = keyof typeof kinds;

export const algorithms = Object.keys(kinds) as [Algorithm, ...Algorithm[]];

export const isAcceptedAlgorithm = (alg: string): alg is Algorithm => Object.hasOwn(kinds, alg);

/** The `kty` of the keys with which the algorithm signs, or the `crv` of those that have one. */
export const kindOfKey = (alg: string): string | undefined =>
  isAcceptedAlgorithm(alg) ? kinds[alg] : undefined;

const MAX_URL_LENGTH = 2_048;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/**
 * Says what is wrong with the URL of an issuer's keys, in words that follow the name of the field. Undefined:
 * nothing.
 */
export function jwksUrlFault(text: string): string | undefined {
  const url = text.length > MAX_URL_LENGTH ? null : URL.parse(text);
  if (url === null) return "must be a URL of at most 2,048 characters";
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (!isSafe) return "must be an https URL; http is only allowed to a loopback address";
  if (url.username !== "" || url.password !== "") return "must have no user and no password";
  return url.hash === "" ? undefined : "must have no fragment";
}
