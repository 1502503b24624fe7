import { keyFactsOf, readsEverything } from "../connection/key-facts.ts";
import { isLoopback } from "../connection/loopback.ts";
import { bodyOf, type RawAnswer } from "../connection/send.ts";
import { messageOf } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import { durationText } from "../../common/text/duration.ts";
import { fail, ok, warn, type Check } from "./check.ts";

interface Connection {
  checks: Check[];
  isReachable: boolean;
  /** The key is accepted, so what it reads can be checked too. */
  isAccepted: boolean;
  /** The deployment's clock. */
  nowMs: number;
  version: string | null;
}

const SOON_MS = 14 * 86_400_000;

/** `Date` has whole seconds, and the answer takes time as well. */
const CLOCK_WARN_MS = 5_000;
const CLOCK_FAIL_MS = 60_000;

/** Lists the URLs of the contexts. */
const OTHER_URL = "leasehold context ls";

/** Most machines with systemd have it. */
const SET_CLOCK = "timedatectl status";

/** Whether the URL, the clock and the key are right. */
export async function checkConnection(context: Context): Promise<Connection> {
  const { url } = await context.target();
  const checks: Check[] = [checkTls(url)];
  let health: RawAnswer;
  try {
    health = await context.send({ method: "GET", path: "/healthz" });
  } catch (error) {
    checks.push(fail("url", messageOf(error), OTHER_URL));
    return { checks, isReachable: false, isAccepted: false, nowMs: context.io.now(), version: null };
  }
  const body = bodyOf(health);
  if (health.status !== 200 || typeof body["version"] !== "string") {
    checks.push(
      fail("url", `HTTP ${health.status}: this is not Leasehold, or something is in front of it`, OTHER_URL),
    );
    return { checks, isReachable: false, isAccepted: false, nowMs: context.io.now(), version: null };
  }
  const offsetMs = clockOffsetOf(health);
  const nowMs = context.io.now() + (offsetMs ?? 0);
  const keyChecks = await checkKey(context, nowMs);
  checks.push(
    ok("url", `answers in ${health.tookMs} ms`, { took_ms: health.tookMs }),
    ok("version", `${body["version"]}, placement ${String(body["placement"])}`),
    checkClock(offsetMs),
    ...keyChecks,
  );
  const isAccepted = keyChecks.every(({ state }) => state !== "fail");
  return { checks, isReachable: true, isAccepted, nowMs, version: body["version"] };
}

const checkTls = (url: string): Check =>
  url.startsWith("https:") || isLoopback(url)
    ? ok("tls", "the key is not sent in clear text")
    : fail(
        "tls",
        "the URL has no TLS, so everybody in between can read the key: use https",
        `leasehold login --url ${url.replace("http:", "https:")}`,
      );

/** The deployment's clock minus this machine's. Undefined: there is no `Date`. */
function clockOffsetOf({ header, tookMs, receivedAtMs }: RawAnswer): number | undefined {
  const at = Date.parse(header("date") ?? "");
  return Number.isNaN(at) ? undefined : Math.round(at - (receivedAtMs - tookMs / 2));
}

function checkClock(offsetMs: number | undefined): Check {
  if (offsetMs === undefined) return warn("clock", "the deployment does not tell its time");
  const facts = { offset_ms: offsetMs };
  const text = `this machine's clock differs by ${durationText(Math.abs(offsetMs))}`;
  if (Math.abs(offsetMs) >= CLOCK_FAIL_MS) return fail("clock", text, SET_CLOCK, facts);
  if (Math.abs(offsetMs) >= CLOCK_WARN_MS) return warn("clock", text, SET_CLOCK, facts);
  return ok("clock", text, facts);
}

async function checkKey(context: Context, nowMs: number): Promise<Check[]> {
  const { url, key, origin } = await context.target();
  const login = `leasehold login --url ${url}`;
  const facts = keyFactsOf(key);
  if (facts === undefined) return [fail("key", `${origin} is not a key of Leasehold`, login)];
  const { status } = await context.send({ method: "GET", path: "/v1/limits" });
  const restMs = facts.expiresAtMs - nowMs;
  const days = Math.floor(restMs / 86_400_000);
  if (restMs <= 0) return [fail("key", `it expired ${durationText(-restMs)} ago`, login, { days })];
  if (status === 401 || status === 403)
    return [fail("key", "it is refused: revoked, or of another deployment", login, { days })];
  if (status !== 200)
    return [fail("key", `it can't be checked: HTTP ${status}`, "leasehold api GET /v1/limits")];
  const about = `role ${facts.role}, expires in ${durationText(restMs)}`;
  const role = readsEverything(facts)
    ? []
    : [warn("role", `only keys of operators and viewers can run all checks; this is ${facts.role}`, login)];
  if (restMs < SOON_MS) return [warn("key", about, `leasehold keys rotate ${facts.id}`, { days }), ...role];
  return [ok("key", about, { days }), ...role];
}
