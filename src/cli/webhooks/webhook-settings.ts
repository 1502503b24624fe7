import { InvalidArgumentError, Option, type Command } from "commander";
import type { Webhook, WebhookThresholds } from "../../users/client/api-types.ts";
import { duration } from "../framework/arguments.ts";

type Event = Webhook["events"][number];
type Threshold = keyof WebhookThresholds;

/** The compiler compares them with those of the API. */
const EVENTS: Readonly<Record<Event, true>> = {
  stale_leases: true,
  history_lost: true,
  contradiction: true,
  cell_silent: true,
  cell_drift: true,
  cron_failed: true,
  credential_expiring: true,
};
const THRESHOLDS: Readonly<Record<Threshold, true>> = {
  stale_leases: true,
  cell_silent: true,
  cell_drift: true,
  credential_expiring: true,
};

const eventNames = Object.keys(EVENTS) as Event[];

/** The settings that `add` and `set` have. */
export interface SettingOptions {
  events?: Event[];
  /** Null: the default. */
  thresholds?: Partial<Record<Threshold, number | null>>;
  for?: number;
  resolve?: number;
}

export const withSettings = (command: Command): Command =>
  command
    .addOption(
      new Option("--events <list>", "what it is told of, separated by commas, or all").argParser(events),
    )
    .addOption(
      new Option("--thresholds <list>", "such as stale_leases=10,cell_drift=default").argParser(thresholds),
    )
    .addOption(
      new Option("--for <time>", "how long a condition must hold, such as 5m; 300s by default").argParser(
        holdTime,
      ),
    )
    .addOption(
      new Option("--resolve <time>", "how long it must not hold until it is resolved").argParser(holdTime),
    );

/** As `--events` takes them. */
export const eventsText = (chosen: readonly Event[]): string =>
  chosen.length === eventNames.length ? "all" : chosen.join(",");

function events(text: string): Event[] {
  if (text === "all") return eventNames;
  const given = text.split(",").map((name) => name.trim());
  const wrong = given.find((name) => !Object.hasOwn(EVENTS, name));
  if (wrong !== undefined || new Set(given).size < given.length)
    throw new InvalidArgumentError(`It must be all, or some of ${eventNames.join(", ")}, each once.`);
  return given as Event[];
}

function thresholds(text: string): Partial<Record<Threshold, number | null>> {
  return Object.fromEntries(
    text.split(",").map((each) => {
      const [name = "", value = ""] = each.trim().split("=");
      if (!Object.hasOwn(THRESHOLDS, name) || !/^(?:\d{1,7}|default)$/.test(value))
        throw new InvalidArgumentError(
          `It must be NAME=NUMBER or NAME=default, with a name of ${Object.keys(THRESHOLDS).join(", ")} ` +
            "and a number from 0 to 9999999.",
        );
      return [name, value === "default" ? null : Number(value)];
    }),
  );
}

const holdTime = duration(0, 86_400);

/** The thresholds after a change, without those that are the default. */
export const thresholdsAfter = (
  before: WebhookThresholds,
  given: SettingOptions["thresholds"] = {},
): WebhookThresholds =>
  Object.fromEntries(
    Object.entries({ ...before, ...given }).filter(([, value]) => value !== null && value !== undefined),
  );
