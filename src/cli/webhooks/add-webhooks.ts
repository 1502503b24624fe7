import { Option, type Command } from "commander";
import { limitOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { addWebhook, setWebhook } from "./set-webhook.ts";
import { listDeliveries, listWebhooks, removeWebhook, testWebhook } from "./webhooks.ts";
import { withSettings } from "./webhook-settings.ts";

const EXAMPLE_ID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

export function addWebhooks(program: Command, run: Run): void {
  const group = program
    .command("webhooks")
    .description("Webhooks: list, add, change, test and remove them, and list their messages.");
  const one = (name: string, about: string): Command =>
    group.command(name).description(about).argument("<id>", "the id of the webhook");
  withExamples(
    group
      .command("ls")
      .description("List the webhooks, with what came of their messages. Their secrets are not stored.")
      .action(run(listWebhooks)),
    ["webhooks ls", "List the webhooks, and see which ones fail"],
  );
  withExamples(
    withSettings(
      group
        .command("add")
        .description(
          "Add a webhook, and print its secret once: standard output has it and nothing else. The address " +
            "may have a secret in its path, so it is asked for, or read from standard input.",
        ),
    )
      .option("--disabled", "add it without sending it anything yet")
      .option("--reason <text>", "why you do this; the audit keeps it")
      .option("--dry-run", "show what would be added, and send nothing")
      .action(run(addWebhook)),
    ["webhooks add --events stale_leases,history_lost < address.txt > secret.txt", "Add a webhook"],
  );
  withExamples(
    withChangeOptions(
      withSettings(one("set", "Change a webhook. Its secret stays."))
        .option("--address", "ask for another address, or read it from standard input")
        .addOption(new Option("--enable", "send to it").conflicts("disable"))
        .option("--disable", "send it nothing until it is enabled again"),
    ).action(run(setWebhook)),
    [`webhooks set ${EXAMPLE_ID} --disable --reason "receiver is being moved"`, "Pause a webhook"],
  );
  withExamples(
    withChangeOptions(one("rm", "Remove a webhook with all of its messages. There is no undo.")).action(
      run(removeWebhook),
    ),
    [`webhooks rm ${EXAMPLE_ID} --reason "receiver is gone"`, "Remove a webhook"],
  );
  withExamples(
    one("test", "Send a test message at once. Exit code 1: it was not delivered.")
      .option("--reason <text>", "why you do this; the audit keeps it")
      .action(run(testWebhook)),
    [`webhooks test ${EXAMPLE_ID}`, "See whether a receiver gets messages"],
  );
  withExamples(
    one("deliveries", "List the messages to a webhook, the latest first: those that wait, and the last 100.")
      .addOption(limitOption())
      .action(run(listDeliveries)),
    [`webhooks deliveries ${EXAMPLE_ID}`, "See what was sent, and why it failed"],
  );
}
