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
