import * as z from "zod";
import { kindOfKey } from "./forms.ts";

const text = z.string().min(1);

/** Only the members that make the key. The others, such as a private part, are dropped. */
const jwk = z.discriminatedUnion("kty", [
  z.object({ kty: z.literal("RSA"), n: text, e: text }),
  z.object({ kty: z.literal("EC"), crv: z.enum(["P-256", "P-384", "P-521"]), x: text, y: text }),
  z.object({ kty: z.literal("OKP"), crv: z.literal("Ed25519"), x: text }),
]);

const about = z.object({
  kid: text.optional(),
  alg: text.optional(),
  use: z.literal("sig").optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes("verify"))
    .optional(),
});

/** A public key with which an issuer's signatures are checked. */
export interface PublicKey {
  kid: string | undefined;
  /** The only algorithm that it may be used with. */
  alg: string | undefined;
  jwk: z.output<typeof jwk>;
}

/** Sets are far smaller. A token without `kid` is checked with each key. */
const MAX_KEYS = 100;

/**
 * Reads the keys of a JWK set, and ignores entries that are no public keys for signatures. Keys that are also
 * in `previous` stay the same objects.
 */
export function readKeys(entries: readonly unknown[], previous: readonly PublicKey[] = []): PublicKey[] {
  const known = new Map(previous.map((key) => [JSON.stringify(key), key]));
  return entries
    .flatMap((entry) => {
      const read = { about: about.safeParse(entry), jwk: jwk.safeParse(entry) };
      if (!read.about.success || !read.jwk.success) return [];
      const { kid, alg } = read.about.data;
      const key: PublicKey = { kid, alg, jwk: read.jwk.data };
      return [known.get(JSON.stringify(key)) ?? key];
    })
    .slice(0, MAX_KEYS);
}

/**
 * Whether the key may have made a signature with this algorithm and this `kid`. A key without `kid` fits
 * every token, and a token without one is checked with all keys.
 */
export function isKeyFor({ kid, alg, jwk: { kty, ...rest } }: PublicKey, wanted: Wanted): boolean {
  const kind = "crv" in rest ? rest.crv : kty;
  return (
    kind === kindOfKey(wanted.alg) &&
    (alg === undefined || synonym(alg) === synonym(wanted.alg)) &&
    (kid === undefined || wanted.kid === undefined || kid === wanted.kid)
  );
}

interface Wanted {
  alg: string;
  kid: string | undefined;
}

/** RFC 9864 gave `EdDSA` with this curve a name of its own. */
const synonym = (alg: string): string => (alg === "Ed25519" ? "EdDSA" : alg);
