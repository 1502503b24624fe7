import { Buffer } from "node:buffer";

/** What a key says about itself. Only the coordinator can check it. */
export interface KeyFacts {
  id: string;
  role: string;
  cell: string | null;
  expiresAtMs: number;
}

/** Reads the payload of a key. Undefined: it is no key of Leasehold. */
export function keyFactsOf(key: string): KeyFacts | undefined {
  const [, payload] = /^lhk_([\w-]+)\.[\w-]+$/.exec(key) ?? [];
  if (payload === undefined) return undefined;
  try {
    const text = Buffer.from(payload, "base64url").toString();
    const { id, role, cell = null, exp } = JSON.parse(text) as Record<string, unknown>;
    if (typeof id !== "string" || typeof role !== "string" || typeof exp !== "number") return undefined;
    return { id, role, cell: typeof cell === "string" ? cell : null, expiresAtMs: exp * 1_000 };
  } catch {
    return undefined;
  }
}

/** Whether the key may read what only operators and viewers may read. */
export const readsEverything = (facts: KeyFacts | undefined): boolean =>
  facts?.role === "operator" || facts?.role === "viewer";
