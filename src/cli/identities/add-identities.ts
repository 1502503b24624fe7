import { Option, type Command } from "commander";
import { withExamples } from "../framework/arguments.ts";
import type { Run } from "../framework/run.ts";
import { withChangeOptions } from "../safety/confirm.ts";
import { applyIdentities, planIdentities, explainIdentity, showIdentities } from "./identities.ts";

export function addIdentities(program: Command, run: Run): void {
  const group = program
    .command("identities")
    .description("The client certificates and tokens that are accepted beside keys.");
  withExamples(
    withFile(
      group.command("plan").description("Show what a file would change. Exit code 10: it differs."),
    ).action(run(planIdentities)),
    ["identities plan --file leasehold.identities.json", "Compare the file with the deployment"],
  );
  withExamples(
    withChangeOptions(
      withFile(
        group.command("apply").description("Make the identities those of a file, all of it or nothing."),
      ),
    ).action(run(applyIdentities)),
    ['identities apply --reason "tokens of our CI"', "Accept what leasehold.identities.json describes"],
  );
  withExamples(
    group
      .command("explain")
      .description("Say who a certificate is, and which id revokes it or a subject of tokens.")
      .option("--certificate <path>", "a client certificate in PEM")
      .option("--issuer <iss>", "the issuer of tokens; needs --subject")
      .option("--subject <sub>", "the subject of the tokens")
      .action(run(explainIdentity)),
    ["identities explain --certificate cell-1.pem", "Find the id of a certificate"],
  );
  withExamples(
    group
      .command("show")
      .description("Print the identities of the deployment as a file, and when certificates expire.")
      .action(run(showIdentities)),
    ["identities show > leasehold.identities.json", "Save the identities in a file"],
  );
}

const withFile = (command: Command): Command =>
  command.addOption(
    new Option("--file <path>", "the file of identities").default("leasehold.identities.json"),
  );
