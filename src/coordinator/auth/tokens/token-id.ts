import { madeKeyId } from "../made-key-id.ts";

/** The id by which all tokens of a subject are logged and revoked. */
export const tokenIdOf = (issuer: string, subject: string): string =>
  madeKeyId(new TextEncoder().encode(JSON.stringify(["token", issuer, subject])));
