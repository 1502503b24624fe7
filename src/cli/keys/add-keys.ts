import { Option, type Command } from "commander";
import { cellId, duration, limitOption, withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { credentialKinds } from "./credentials.ts";
import { listKeys, mintKey, revokeKey, rotateKey } from "./keys.ts";

const ROLES = ["cell", "router", "operator", "viewer", "scraper", "bridge"];

const EXAMPLE_ID = "01936f6e-2c1a-7c3e-9d56-3a1f0c9b7e42";

const roleOption = (): Option => new Option("--role <role>", "who uses the key").choices(ROLES);
const cellOption = (): Option => new Option("--cell <id>", "the cell of the key").argParser(cellId);

export function addKeys(program: Command, run: Run): void {
  const group = program.command("keys").description("Keys: make, list, revoke and replace them.");
  withExamples(
    group
      .command("mint")
      .description("Make a key, and print it once: standard output has the key and nothing else.")
      .addOption(roleOption().makeOptionMandatory())
      .addOption(cellOption())
      .addOption(new Option("--expires-in <time>", "its lifetime; 90d by default").argParser(duration(1)))
      .option("--note <text>", "what the key is for")
      .option("--reason <text>", "why you do this; the audit keeps it")
      .option("--dry-run", "show what would be made, and send nothing")
      .action(run(mintKey)),
    ["keys mint --role cell --cell 7 --note web > cell-7.key", "Make a key for cell 7"],
  );
  withExamples(
    group
      .command("ls")
      .description(
        "List keys in the order of their last change, certificates and tokens that were used, and their " +
          "authorities and issuers. Keys themselves are not stored.",
      )
      .addOption(new Option("--kind <kind>", "only these").choices(credentialKinds))
      .addOption(roleOption())
      .addOption(cellOption())
      .addOption(new Option("--expires-in <time>", "only what expires by then").argParser(duration(1)))
      .addOption(limitOption())
      .action(run(listKeys)),
    ["keys ls --expires-in 14d", "Keys and certificates that expire within two weeks"],
  );
  withExamples(
    withChangeOptions(
      group
        .command("revoke")
        .description("Make a key invalid. This is final.")
        .argument("<id>", "the id of the key")
        .addOption(cellOption()),
    ).action(run(revokeKey)),
    [`keys revoke ${EXAMPLE_ID} --reason "was in a log"`, "Revoke a key"],
  );
  withExamples(
    group
      .command("rotate")
      .description("Make a key like an old one, print it once, and tell how to revoke the old one.")
      .argument("<id>", "the id of the old key")
      .addOption(
        new Option("--expires-in <time>", "its lifetime; that of the old key by default").argParser(
          duration(1),
        ),
      )
      .option("--reason <text>", "why you do this; the audit keeps it")
      .option("--dry-run", "show what would be made, and send nothing")
      .action(run(rotateKey)),
    [`keys rotate ${EXAMPLE_ID} > new.key`, "Replace a key before it expires"],
    [`keys rotate ${EXAMPLE_ID} --expires-in 90d > new.key`, "Make the new key valid for 90 days"],
  );
}
