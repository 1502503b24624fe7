/**
 * Positions of shards, by shard. A reader that carries the positions of its own writes finds what it wrote
 * (Q9).
 */
export type Positions = ReadonlyMap<number, number>;

/** The cookie that carries positions from one request of a client to its next. */
export const POSITION_COOKIE = "Leasehold-Position";

/**
 * The largest number of shards of a deployment, so the positions of every lease are few enough. A router
 * imports nothing of the coordinator, so a test compares this with the coordinator's number.
 */
const MAX_SHARDS = 256;

/**
 * The longest text. A cookie may have 4,096 bytes, with its name and attributes. The pairs of 256 shards fit
 * up to positions of 11 digits, which a shard reaches after 63 years with 50 transactions a second.
 */
const MAX_TEXT_LENGTH = 4_000;

/** A longer header does not come from a browser that keeps to the limits of RFC 6265. */
const MAX_HEADER_LENGTH = 65_536;

const PAIR = String.raw`(?:0|[1-9]\d{0,2}):(?:0|[1-9]\d{0,15})`;

/** The form of positions in text, for the description of the API. */
export const positionsForm = { pattern: `^${PAIR}(?:,${PAIR})*$`, maxLength: MAX_TEXT_LENGTH } as const;

/**
 * Reads positions from text such as `3:4711,5:88`, at most 256 pairs and 4,000 characters. Returns undefined
 * for anything else: a client can send any text.
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
  const read = readPositions(text);
  return typeof read === "string" ? undefined : read;
}

/** Reads positions from text. Returns what is wrong with it, to complete a sentence. */
export function readPositions(text: string): Positions | string {
  if (text.length > MAX_TEXT_LENGTH) return `must have at most ${MAX_TEXT_LENGTH} characters`;
  const positions = new Map<number, number>();
  for (const pair of text.split(",")) {
    if (!ONE_PAIR.test(pair))
      return "must be pairs of a shard and a position, such as 3:4711,5:88; or leave it out";
    const [shard = NaN, position = NaN] = pair.split(":").map(Number);
    if (shard >= MAX_SHARDS) return `must have shards below ${MAX_SHARDS}`;
    if (!Number.isSafeInteger(position)) return `must have positions of at most ${Number.MAX_SAFE_INTEGER}`;
    if (positions.has(shard)) return `must have shard ${shard} only once`;
    positions.set(shard, position);
  }
  return positions;
}

const ONE_PAIR = new RegExp(`^${PAIR}$`);

/**
 * Writes positions as `parsePositions` reads them, in the order of the shards. If they don't fit into 4,000
 * characters, it leaves out those that were set first. Then only names of these shards may be found later:
 * as late as without positions.
 *
 * @throws A `RangeError` if a position is not a whole number that is at least 0, or a shard not one of 0 to
 * 255.
 * @example
 * ```ts
 * import { formatPositions } from "leasehold/router";
 *
 * console.log(formatPositions(new Map([[5, 88], [3, 4711]]))); // 3:4711,5:88
 * ```
 */
export function formatPositions(positions: Positions): string {
  const pairs: [shard: number, text: string][] = [];
  // With a comma behind each.
  let length = -1;
  for (const [shard, position] of [...positions].toReversed()) {
    if (!isPair(shard, position))
      throw new RangeError(
        `\`positions\` must have whole numbers of at least 0, and shards below ${MAX_SHARDS}; ` +
          `got ${shard}:${position}`,
      );
    const text = `${shard}:${position}`;
    length += text.length + 1;
    if (length > MAX_TEXT_LENGTH) break;
    pairs.push([shard, text]);
  }
  return pairs
    .toSorted(([a], [b]) => a - b)
    .map(([, text]) => text)
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
  shard < MAX_SHARDS &&
  Number.isSafeInteger(position) &&
  position >= 0;
