/** The variables and secrets of the router Worker. */

/** The values of the variables, checked. */
export interface Settings {
  readonly url: string;
  readonly key: string;
  /** The rules as a JSON document. Undefined: those of `rules.json`. */
  readonly rules: unknown;
  /** Needed to read the metrics. Undefined: nobody can. */
  readonly metricsKey: string | undefined;
  readonly usesReports: boolean;
  readonly usesSharedCache: boolean;
  readonly allowsLocalHttp: boolean;
  readonly trustsForwarded: boolean;
  readonly showsRoute: boolean;
  /** Undefined: no request gets a trace. */
  readonly traceShare: number | undefined;
  /** Only those that are set: the package has the defaults. */
  readonly numbers: Readonly<Partial<Record<NumberOption, number>>>;
}

/** The variables that are numbers, with the option of `createRoutes` or `createProxy`, and the limits. */
const NUMBERS = {
  ROUTER_MAX_AGE_MS: { option: "maxAgeMs", min: 1, max: 60_000 },
  ROUTER_REPORTED_MAX_AGE_MS: { option: "reportedMaxAgeMs", min: 1, max: 86_400_000 },
  ROUTER_BOUND_MS: { option: "boundMs", min: 1_000, max: 60_000 },
  ROUTER_NEGATIVE_MAX_AGE_MS: { option: "negativeMaxAgeMs", min: 0, max: 60_000 },
  ROUTER_GRACE_MS: { option: "graceMs", min: 0, max: 86_400_000 },
  ROUTER_MEMORY_BYTES: { option: "memoryBytes", min: 65_536, max: 100_000_000 },
  ROUTER_LOOKUP_TIMEOUT_MS: { option: "timeoutMs", min: 50, max: 60_000 },
  ROUTER_ANSWER_TIMEOUT_MS: { option: "answerTimeoutMs", min: 100, max: 3_600_000 },
  ROUTER_UPLOAD_TIMEOUT_MS: { option: "uploadTimeoutMs", min: 100, max: 86_400_000 },
} as const;

type NumberOption = (typeof NUMBERS)[keyof typeof NUMBERS]["option"];

const SWITCHES = [
  "ROUTER_REPORTS",
  "ROUTER_SHARED_CACHE",
  "ROUTER_ALLOW_LOCAL_HTTP",
  "ROUTER_TRUST_FORWARDED",
  "ROUTER_SHOW_ROUTE",
] as const;

/** The names of all variables, without the secrets. */
export const settingNames: readonly string[] = [
  "ROUTER_RULES",
  "ROUTER_TRACE_SHARE",
  ...SWITCHES,
  ...Object.keys(NUMBERS),
];

/** A shorter key could be guessed. */
const MIN_KEY_LENGTH = 32;
const LOCAL_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Reads the variables. Throws an Error whose message names the variable that is wrong, without its value. */
export function readSettings(variables: Readonly<Record<string, unknown>>): Settings {
  const textOf = (name: string): string | undefined => {
    const value = variables[name];
    if (value === undefined || value === "") return undefined;
    if (typeof value !== "string") throw new Error(`${name} must be a text`);
    return value;
  };
  const isOn = (name: (typeof SWITCHES)[number], otherwise: boolean): boolean => {
    const value = textOf(name);
    if (value !== undefined && value !== "on" && value !== "off")
      throw new Error(`${name} must be on or off`);
    return value === undefined ? otherwise : value === "on";
  };
  const unknown = Object.keys(variables).find(
    (name) => name.startsWith("ROUTER_") && name !== "ROUTER_METRICS_KEY" && !settingNames.includes(name),
  );
  if (unknown !== undefined)
    throw new Error(`${unknown} is not a setting; docs/guides/deploy-a-router.md lists them`);
  const metricsKey = textOf("ROUTER_METRICS_KEY");
  if (metricsKey !== undefined && !isMetricsKey(metricsKey))
    throw new Error(`ROUTER_METRICS_KEY must have at least ${MIN_KEY_LENGTH} characters`);
  const key = textOf("LEASEHOLD_KEY");
  if (key === undefined) throw new Error("LEASEHOLD_KEY is missing; set it to a key with the role router");
  return {
    url: coordinatorUrl(textOf("LEASEHOLD_URL")),
    key,
    rules: rulesOf(textOf("ROUTER_RULES")),
    metricsKey,
    usesReports: isOn("ROUTER_REPORTS", true),
    usesSharedCache: isOn("ROUTER_SHARED_CACHE", false),
    allowsLocalHttp: isOn("ROUTER_ALLOW_LOCAL_HTTP", false),
    trustsForwarded: isOn("ROUTER_TRUST_FORWARDED", false),
    showsRoute: isOn("ROUTER_SHOW_ROUTE", false),
    traceShare: traceShareOf(textOf("ROUTER_TRACE_SHARE")),
    numbers: Object.fromEntries(
      Object.entries(NUMBERS).flatMap(([name, { option, min, max }]) => {
        const text = textOf(name);
        if (text === undefined) return [];
        const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
        if (!(value >= min && value <= max))
          throw new Error(`${name} must be a whole number from ${min} to ${max}`);
        return [[option, value]];
      }),
    ),
  };
}

function traceShareOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const share = /^\d(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!(share >= 0 && share <= 1))
    throw new Error("ROUTER_TRACE_SHARE must be a share from 0 to 1 such as 0.01");
  return share;
}

const isMetricsKey = (value: unknown): value is string =>
  typeof value === "string" && value.length >= MIN_KEY_LENGTH;

/** The key of the metrics, also if other variables are wrong. Undefined if there is no usable one. */
export function metricsKeyOf({
  ROUTER_METRICS_KEY: key,
}: Readonly<Record<string, unknown>>): string | undefined {
  return isMetricsKey(key) ? key : undefined;
}

function coordinatorUrl(text: string | undefined): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOCAL_HOSTS.has(url.hostname));
  if (url === undefined || !isSafe)
    throw new Error("LEASEHOLD_URL must be the https address of the coordinator");
  return url.href;
}

function rulesOf(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    throw new Error("ROUTER_RULES must be a JSON document");
  }
}
