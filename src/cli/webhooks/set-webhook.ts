import type { Webhook, WebhookChange, NewWebhook } from "../../users/client/api-types.ts";
import { commandLine } from "../../common/text/shell-word.ts";
import { callRoute } from "../connection/call-route.ts";
import { usageError } from "../framework/command-error.ts";
import type { Context } from "../framework/context.ts";
import type { Result } from "../output/result.ts";
import { confirm, reasonOf, type ChangeOptions } from "../safety/confirm.ts";
import { findWebhook, pathOf, typedNameOf, originOf, readAddress } from "./webhooks.ts";
import { thresholdsAfter, type SettingOptions } from "./webhook-settings.ts";

interface SetOptions extends SettingOptions, ChangeOptions {
  address?: boolean;
  enable?: boolean;
  disable?: boolean;
}

/** A setting that changes, as flags would set it. */
interface Difference {
  flag: string;
  before: string;
  after: string;
}

export async function setWebhook(context: Context, id: string, options: SetOptions): Promise<Result> {
  const { events, thresholds, address, enable, disable, dryRun } = options;
  const times = [options.for, options.resolve];
  if ([events, thresholds, address, enable, disable, ...times].every((given) => given === undefined))
    throw usageError("give a setting to change; --help lists them");
  const reason = reasonOf(options);
  pathOf(id);
  const url = address === true ? await readAddress(context) : undefined;
  const before = await findWebhook(context, id);
  const change: WebhookChange = {
    url,
    events,
    thresholds: thresholds && thresholdsAfter(before.thresholds, thresholds),
    for_s: options.for,
    resolve_s: options.resolve,
    enabled: enable === true ? true : disable === true ? false : undefined,
  };
  const differences = differencesOf(before, change);
  if (differences.length === 0)
    return {
      document: { webhook: before, changed: false, dry_run: dryRun === true },
      text: () => `Webhook ${id} has these settings already. Nothing was changed.`,
    };
  const changes = differences.map(({ flag, before: from, after: to }) => `${flag} ${from} -> ${to}`);
  const summary = changes.join("; ");
  if (dryRun === true)
    return {
      document: { webhook: before, changes, changed: false, dry_run: true },
      text: () => `Would change webhook ${id}: ${summary}`,
      notes: ["Nothing was changed."],
    };
  const effect = `This changes webhook ${id}: ${summary}, because: ${reason}`;
  await confirm(context, options, { name: typedNameOf(id), effect });
  const { webhook } = await callRoute<{ webhook: Webhook }>(context, {
    method: "PATCH",
    path: pathOf(id),
    body: JSON.stringify({ ...change, reason }),
  });
  const undo = undoOf(id, before, differences);
  return {
    document: { webhook, changes, changed: true, dry_run: false, undo },
    text: () => `Changed webhook ${id}: ${summary}`,
    notes: [`To undo it: ${undo}${url === undefined ? "" : ", with the old address as its input"}`],
    nextSteps: url === undefined ? [] : [commandLine("webhooks", "test", id)],
  };
}

const differenceOf = <T>(
  flag: string,
  old: T,
  next: T | undefined,
  text: (value: T) => string,
): Difference[] =>
  next === undefined || JSON.stringify(old) === JSON.stringify(next)
    ? []
    : [{ flag, before: text(old), after: text(next) }];

const seconds = (value: number): string => `${value}s`;

function differencesOf(before: Webhook, change: WebhookChange): Difference[] {
  const { url, events, thresholds, for_s: forS, resolve_s: resolveS, enabled } = change;
  return [
    // The path of an address may be a secret, so it is not shown, even if only it changes.
    ...(url === undefined || url === before.url
      ? []
      : [{ flag: "address", before: originOf(before.url), after: otherThan(before.url, url) }]),
    ...differenceOf("events", [...before.events].toSorted(), events?.toSorted(), (names) => names.join(",")),
    ...differenceOf("thresholds", pairsOf(before.thresholds), thresholds && pairsOf(thresholds), (pairs) =>
      pairs.length === 0 ? "default" : pairs.map((pair) => pair.join("=")).join(","),
    ),
    ...differenceOf("for", before.for_s, forS, seconds),
    ...differenceOf("resolve", before.resolve_s, resolveS, seconds),
    ...differenceOf("enabled", before.enabled, enabled, String),
  ];
}

const otherThan = (before: string, url: string): string =>
  originOf(before) === originOf(url) ? "another path" : originOf(url);

const pairsOf = (thresholds: Webhook["thresholds"]): [string, number][] =>
  Object.entries(thresholds).toSorted(([a], [b]) => (a < b ? -1 : 1)) as [string, number][];

/** The thresholds that were the default are set to it. */
function undoOf(id: string, { thresholds: before }: Webhook, differences: readonly Difference[]): string {
  const flags = differences.flatMap(({ flag, before: from, after: to }) => {
    switch (flag) {
      case "address":
        return ["--address"];
      case "enabled":
        return [from === "true" ? "--enable" : "--disable"];
      case "thresholds": {
        const names = to === "default" ? [] : to.split(",").map((pair) => pair.split("=", 1)[0] ?? "");
        const reset = names.filter((name) => !Object.hasOwn(before, name)).map((name) => `${name}=default`);
        return ["--thresholds", [...(from === "default" ? [] : [from]), ...reset].join(",")];
      }
      default:
        return [`--${flag}`, from];
    }
  });
  return `${commandLine("webhooks", "set", id, ...flags)} --reason TEXT`;
}

interface AddOptions extends SettingOptions {
  disabled?: boolean;
  reason?: string;
  dryRun?: boolean;
}

export async function addWebhook(context: Context, options: AddOptions): Promise<Result> {
  const url = await readAddress(context);
  const wanted: NewWebhook = {
    url,
    events: options.events,
    thresholds: options.thresholds && thresholdsAfter({}, options.thresholds),
    for_s: options.for,
    resolve_s: options.resolve,
    enabled: options.disabled === true ? false : undefined,
    reason: options.reason,
  };
  if (options.dryRun === true)
    return {
      document: { webhook: null, wanted: { ...wanted, url: originOf(url) }, changed: false, dry_run: true },
      text: () => "",
      notes: [`Would add a webhook to ${originOf(url)}.`, "Nothing was changed."],
    };
  const { webhook, secret } = await callRoute<{ webhook: Webhook; secret: string }>(context, {
    method: "POST",
    path: "/v1/admin/webhooks",
    body: JSON.stringify(wanted),
  });
  const undo = `${commandLine("webhooks", "rm", webhook.id)} --reason TEXT`;
  return {
    document: { webhook, secret, changed: true, dry_run: false, undo },
    // Standard output has the secret alone, so that it can be piped.
    text: () => secret,
    notes: [
      `Webhook ${webhook.id} sends to ${originOf(url)}. The secret is shown only this once.`,
      `To undo it: ${undo}`,
    ],
    nextSteps: [commandLine("webhooks", "test", webhook.id)],
  };
}
