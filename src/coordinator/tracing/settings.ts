/** Where spans go, and how many. */
export interface TracingSettings {
  /** The URL of the collector, with the path of the signal. */
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The share of requests that are traced, from 0 to 1. */
  share: number;
}

const DEFAULT_SHARE = 0.01;
/** A header field name (RFC 9110, 5.6.2). */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\x20-\x7e]*$/;

/**
 * Reads the variables. Undefined: nothing is traced. Throws an Error that names the wrong variable, without
 * its value.
 */
export function readTracing(variables: Readonly<Record<string, unknown>>): TracingSettings | undefined {
  const share = shareOf(variables["LEASEHOLD_TRACE_SHARE"]);
  const headers = headersOf(variables["LEASEHOLD_OTLP_HEADERS"]);
  const endpoint = variables["LEASEHOLD_OTLP_ENDPOINT"];
  if (endpoint === undefined || endpoint === "") return undefined;
  return { url: urlOf(endpoint), headers, share };
}

function shareOf(given: unknown): number {
  if (given === undefined || given === "") return DEFAULT_SHARE;
  const share = typeof given === "string" && /^\d(\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
  if (share >= 0 && share <= 1) return share;
  throw new Error("LEASEHOLD_TRACE_SHARE must be a share from 0 to 1 such as 0.01");
}

/** Adds the path of traces, as OpenTelemetry does with its own variable for all signals. */
function urlOf(given: unknown): string {
  const url = typeof given === "string" && URL.canParse(given) ? new URL(given) : undefined;
  const isUsable =
    url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  // A key in the URL would get into logs.
  if (!isUsable || url.username !== "" || url.password !== "")
    throw new Error(
      "LEASEHOLD_OTLP_ENDPOINT must be the http or https URL of an OTLP collector such as " +
        "https://otel.example.com, without user, query and /v1/traces",
    );
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}/v1/traces`;
}

/** Reads `name=value` pairs, separated by commas. The values are percent-encoded. */
function headersOf(given: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  if (given === undefined || given === "") return headers;
  const wrong = new Error(
    "LEASEHOLD_OTLP_HEADERS must be pairs such as authorization=Bearer%20abc, separated by commas",
  );
  if (typeof given !== "string") throw wrong;
  for (const pair of given.split(",")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(0, at)).trim().toLowerCase();
    const value = decoded(pair.slice(at + 1).trim());
    if (!NAME.test(name) || value === undefined || !VALUE.test(value)) throw wrong;
    headers[name] = value;
  }
  return headers;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
