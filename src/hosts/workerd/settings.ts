/** What `npm start` and `npm run standalone` read from the environment. */
import { resolve } from "node:path";
import { limitNames, limitVariable } from "../../common/limits.ts";
import { escapeLines } from "../../common/text/escape.ts";
import { shardsOf } from "../../coordinator/kernel/placement.ts";

const settings = new Set([
  ...limitNames.map(limitVariable),
  "LEASEHOLD_SHARDS",
  "LEASEHOLD_SHARD_LOCATION_HINT",
  "LEASEHOLD_REQUEST_LOG",
  "LEASEHOLD_OTLP_ENDPOINT",
  "LEASEHOLD_OTLP_HEADERS",
  "LEASEHOLD_TRACE_SHARE",
  "LEASEHOLD_ACCESS_TEAM_DOMAIN",
  "LEASEHOLD_ACCESS_AUDIENCE",
  "LEASEHOLD_ACCESS_OPERATORS",
  "LEASEHOLD_ACCESS_VIEWERS",
  "LEASEHOLD_WEBHOOK_HOSTS",
]);
/** Variables that are not passed to the Worker, and cause no warning. */
const others = new Set([
  "LEASEHOLD_STATE",
  "LEASEHOLD_CELL",
  "LEASEHOLD_KEY",
  "LEASEHOLD_OPERATOR_KEY",
  "LEASEHOLD_URL",
  "LEASEHOLD_WORKERD",
  "LEASEHOLD_SIGNING_SECRET",
  "LEASEHOLD_PREVIOUS_SIGNING_SECRET",
]);

export function portOf(given: string | undefined, setting = "PORT"): number {
  const text = given || "8787";
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535)
    throw new Error(`${setting} must be a whole number from 1 to 65535`);
  return port;
}

/**
 * Returns the limits and settings for the Worker. The signing secret is not one of them: it comes from the
 * state folder.
 */
export function variablesOf(env: NodeJS.ProcessEnv): Record<string, string> {
  const given = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith("LEASEHOLD_") && value ? [[name, value] as const] : [],
  );
  for (const [name] of given)
    if (!settings.has(name) && !others.has(name))
      process.stderr.write(
        `leasehold: ${escapeLines(name)} is not a setting and is ignored; ` +
          "docs/reference/configuration.md lists them\n",
      );
  return Object.fromEntries(given.filter(([name]) => settings.has(name)));
}

/**
 * Calls `end` if npm, the parent process, is killed. npm cannot pass SIGKILL on.
 *
 * @param script the name of the npm script that runs this process
 */
export function endWithNpm(script: string, project: string, end: () => void): void {
  const { npm_lifecycle_event: running, npm_package_json: manifest } = process.env;
  // Child processes of another script inherit both variables, so compare the project as well.
  if (running !== script || manifest !== resolve(project, "package.json")) return;
  const npm = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === npm) return;
    clearInterval(watch);
    end();
  }, 200);
  watch.unref();
}

/**
 * Says what is wrong with LEASEHOLD_SHARDS for a deployment that runs: it must not ask for more shards than
 * the deployment has. It may ask for fewer, because the deployment may have grown. Undefined: nothing.
 */
export function shardsFault(configured: string | undefined, placement: string): string | undefined {
  const shards = shardsOf(placement);
  if (configured === undefined || Number(configured) <= shards) return undefined;
  return (
    `LEASEHOLD_SHARDS is ${configured}, but the deployment has ${shards} shards; leave out the variable, ` +
    "and change the number with `leasehold shards grow`"
  );
}
