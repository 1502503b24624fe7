import type { HttpAnswer } from "./incoming.ts";

export const JSON_TYPE = "application/json";

/** Ends with a line feed, so that answers to curl don't run together. */
export const jsonText = (body: unknown): string => `${JSON.stringify(body)}\n`;

export const jsonAnswer = (
  body: unknown,
  status: number,
  headers: Readonly<Record<string, string>>,
  requestId: string,
): HttpAnswer => ({
  status,
  headers: secured({ "content-type": JSON_TYPE, ...headers }, requestId),
  body: jsonText(body),
});

/**
 * The defaults for routes that don't set these headers: nothing is cached, and nothing in the answer may load
 * or run.
 */
const UNLESS_SET = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
};

const ALWAYS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "strict-transport-security": "max-age=31536000",
};

/** Returns all headers of an answer, from those that are its own, in lower case. */
export const secured = (
  own: Readonly<Record<string, string>>,
  requestId: string,
): Record<string, string> => ({ ...UNLESS_SET, ...own, ...ALWAYS, "x-request-id": requestId });

/**
 * How much an `Accept` header wants a media type: from 0, not at all, to 1. A range with a wildcard doesn't
 * count, because whoever sends it takes what is there.
 *
 * @param version the version that the type has; a range with another one doesn't count
 */
export function wanted(accept: string | undefined, type: string, version?: string): number {
  const weights = (accept ?? "").split(",").map((range) => {
    const [name, ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const given = new Map(
      parameters.map((parameter) => {
        const [key = "", value = ""] = parameter.split("=", 2).map((part) => part.trim());
        return [key, value.replaceAll('"', "")];
      }),
    );
    const isOther = version !== undefined && (given.get("version") ?? version) !== version;
    if (name !== type || isOther) return 0;
    const weight = Number(given.get("q") ?? 1);
    return weight >= 0 && weight <= 1 ? weight : 1;
  });
  return Math.max(...weights);
}

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
