import type { RoutedRequest } from "./types.ts";

/** The parts of one request that conditions read, each parsed when it is first needed. */
export class RequestParts {
  readonly #headers: Headers;
  readonly #url: URL | null;
  #segments: readonly string[] | undefined;
  #cookies: readonly (readonly [name: string, value: string])[] | undefined;

  constructor({ url, headers }: RoutedRequest) {
    this.#headers = headers;
    this.#url = typeof url === "string" ? (URL.canParse(url) ? new URL(url) : null) : url;
  }

  /** The path as it was sent, percent-encoded. */
  get pathname(): string {
    return this.#url?.pathname ?? "/";
  }

  /** The segments of the path, decoded. Empty ones are left out, so slashes at the end don't count. */
  get segments(): readonly string[] {
    this.#segments ??= this.pathname.split("/").flatMap((text) => (text === "" ? [] : decoded(text)));
    return this.#segments;
  }

  /** The host name in lower case, without the port and without a dot at the end. */
  get host(): string {
    const { hostname = "" } = this.#url ?? {};
    return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  }

  /** The header of a name, in a list of at most one. */
  header(name: string): string[] {
    const value = this.#headers.get(name);
    return value === null ? [] : [value];
  }

  headersNamed(isName: (name: string) => boolean): string[] {
    return [...this.#headers].flatMap(([name, value]) => (isName(name) ? value : []));
  }

  /** The values of the cookies of a name, in the order of the header. */
  cookiesNamed(isName: (name: string) => boolean): string[] {
    this.#cookies ??= parseCookies(this.#headers.get("cookie") ?? "");
    return this.#cookies.flatMap(([name, value]) => (isName(name) ? value : []));
  }
}

/** Cookies that are looked at. Browsers send at most some 180 to a site. */
const MAX_COOKIES = 256;

const parseCookies = (header: string): [name: string, value: string][] =>
  header.split(";", MAX_COOKIES).flatMap((pair): [name: string, value: string][] => {
    const equals = pair.indexOf("=");
    if (equals === -1) return [];
    const value = pair.slice(equals + 1).trim();
    const isQuoted = value.length > 1 && value.startsWith('"') && value.endsWith('"');
    return [[pair.slice(0, equals).trim(), isQuoted ? value.slice(1, -1) : value]];
  });

/** A segment that is not valid percent-encoding stays as it is. */
function decoded(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
