/**
 * Positions of shards, by shard. A reader that carries the positions of its own writes finds what it wrote
 * (Q9).
 */
export type Positions = ReadonlyMap<number, number>;

/** The cookie that carries positions from one request of a client to its next. */
export const POSITION_COOKIE = "Leasehold-Position";

const MAX_PAIRS = 16;
const MAX_TEXT_BYTES = 512;
/** More shards than any deployment has. */
const MAX_SHARD = 65_535;
/** A longer header does not come from a browser that keeps to the limits of RFC 6265. */
const MAX_HEADER_LENGTH = 65_536;

/**
 * Reads positions from text such as `3:4711,5:88`, at most 16 pairs and 512 bytes. Returns undefined for
 * anything else: a client can send any text.
 *
 * @example
 * ```ts
 * import { parsePositions } from "leasehold/router";
 *
 * const positions = parsePositions("3:4711,5:88");
 * console.log(positions?.get(3)); // 4711
 * ```
 */
export function parsePositions(text: string): Positions | undefined {
  if (text.length > MAX_TEXT_BYTES) return undefined;
  const pairs = text.split(",");
  if (pairs.length > MAX_PAIRS) return undefined;
  const positions = new Map<number, number>();
  for (const pair of pairs) {
    const [, shardText = "", positionText = ""] = /^(0|[1-9]\d{0,4}):(0|[1-9]\d{0,15})$/.exec(pair) ?? [];
    const [shard, position] = [Number(shardText), Number(positionText)];
    if (shardText === "" || !isPair(shard, position) || positions.has(shard)) return undefined;
    positions.set(shard, position);
  }
  return positions;
}

/**
 * Writes positions as `parsePositions` reads them, in the order of the shards. Of more than 16 pairs, it
 * writes the 16 that were set last: they belong to the newest writes.
 *
 * @throws A `RangeError` if a shard or position is not a whole number that is at least 0.
 * @example
 * ```ts
 * import { formatPositions } from "leasehold/router";
 *
 * console.log(formatPositions(new Map([[5, 88], [3, 4711]]))); // 3:4711,5:88
 * ```
 */
export function formatPositions(positions: Positions): string {
  const pairs = [...positions].slice(-MAX_PAIRS);
  for (const [shard, position] of pairs)
    if (!isPair(shard, position))
      throw new RangeError(`\`positions\` must have whole numbers of at least 0; got ${shard}:${position}`);
  return pairs
    .toSorted(([a], [b]) => a - b)
    .map(([shard, position]) => `${shard}:${position}`)
    .join(",");
}

/**
 * Reads the positions that a client carries in its `Leasehold-Position` cookie. Returns none if there is no
 * such cookie, or if its text is not valid.
 *
 * @param cookies The request's `Cookie` header.
 * @example
 * ```ts
 * import { positionsFromCookie } from "leasehold/router";
 *
 * const { headers } = new Request("https://www.example.com");
 * const minPositions = positionsFromCookie(headers.get("cookie"));
 * ```
 */
export function positionsFromCookie(cookies: string | null | undefined): Positions {
  if (cookies === null || cookies === undefined || cookies.length > MAX_HEADER_LENGTH) return new Map();
  for (const cookie of cookies.split(";")) {
    const [name = "", ...value] = cookie.split("=");
    if (name.trim() !== POSITION_COOKIE) continue;
    return parsePositions(value.join("=").trim()) ?? new Map();
  }
  return new Map();
}

/**
 * Writes a `Set-Cookie` header that lets a client carry positions to its next requests. Scripts of a page
 * cannot read the cookie.
 *
 * @param maxAgeS How long the client keeps it, in seconds. The staleness bound of the routers is enough.
 * @example
 * ```ts
 * import { positionCookie } from "leasehold/router";
 *
 * const response = new Response("created");
 * response.headers.append("set-cookie", positionCookie(new Map([[3, 4711]]), 5));
 * ```
 */
export function positionCookie(positions: Positions, maxAgeS: number): string {
  if (!Number.isInteger(maxAgeS) || maxAgeS < 0)
    throw new RangeError("`maxAgeS` must be a whole number of seconds that is at least 0");
  const text = formatPositions(positions);
  return `${POSITION_COOKIE}=${text}; Max-Age=${maxAgeS}; Path=/; HttpOnly; Secure; SameSite=Lax`;
}

/**
 * Joins positions: each shard has the larger of its positions.
 *
 * @example
 * ```ts
 * import { mergePositions, parsePositions } from "leasehold/router";
 *
 * const carried = parsePositions("3:4711") ?? new Map();
 * console.log(mergePositions(carried, new Map([[3, 4800]])).get(3)); // 4800
 * ```
 */
export function mergePositions(a: Positions, b: Positions): Positions {
  const merged = new Map(a);
  for (const [shard, position] of b) {
    const larger = Math.max(position, merged.get(shard) ?? 0);
    // Deleted first, because `formatPositions` keeps the pairs that were set last.
    merged.delete(shard);
    merged.set(shard, larger);
  }
  return merged;
}

const isPair = (shard: number, position: number): boolean =>
  Number.isInteger(shard) &&
  shard >= 0 &&
  shard <= MAX_SHARD &&
  Number.isSafeInteger(position) &&
  position >= 0;
