/** How long answers about names and cells may be kept. */

/** A name that is free now may be taken in the next moment, and then its owner wants to be found. */
export const NOT_FOUND_MAX_AGE_S = 1;

export const CELLS_MAX_AGE_S = 15;

/** All headers that can say who asks. Clients of Cloudflare Access send a cookie or a service token. */
const VARY = "authorization, cf-access-jwt-assertion, cf-access-client-id, cookie";

/**
 * Allows caches of the caller to keep an answer. It depends on who asks, so a shared cache must not keep it,
 * and a cache that several keys of one program use must tell them apart.
 */
export const kept = (maxAgeS: number, more = ""): Record<string, string> =>
  maxAgeS === 0 ? {} : { "cache-control": `private, max-age=${maxAgeS}${more}`, vary: VARY };
