import { Help, Option, type Command } from "commander";
import { addApi } from "../api/add-api.ts";
import { addAudit } from "../audit/add-audit.ts";
import { addBackup } from "../backup/add-backup.ts";
import { addBench } from "../bench/add-bench.ts";
import { addCells } from "../cells/add-cells.ts";
import { addClaims } from "../claims/add-claims.ts";
import { addCompletion } from "../completion/add-completion.ts";
import { addConformance } from "../conformance/add-conformance.ts";
import { addContexts } from "../contexts/add-contexts.ts";
import { addDev } from "../dev/add-dev.ts";
import { addDoctor } from "../doctor/add-doctor.ts";
import { addGrpc } from "../grpc/add-grpc.ts";
import { addKeys } from "../keys/add-keys.ts";
import { addOperations } from "../operations/add-operations.ts";
import { addParts } from "../parts/add-parts.ts";
import { addLeases } from "../leases/add-leases.ts";
import { addLogin } from "../login/add-login.ts";
import { addLookup } from "../lookup/add-lookup.ts";
import { addRoute } from "../route/add-route.ts";
import { addStatus } from "../status/add-status.ts";
import { addIdentities } from "../identities/add-identities.ts";
import { addScrub } from "../scrub/add-scrub.ts";
import { addShards } from "../shards/add-shards.ts";
import { addTransfers } from "../transfers/add-transfers.ts";
import { addTypes } from "../types/add-types.ts";
import { addUpgrade } from "../upgrade/add-upgrade.ts";
import { addVerify } from "../verify/add-verify.ts";
import { addWatch } from "../watch/add-watch.ts";
import { addWebhooks } from "../webhooks/add-webhooks.ts";
import { LenientCommand } from "./missing.ts";
import { VERSION } from "./version.ts";
import type { Run } from "./run.ts";

interface Sinks {
  out: (text: string) => unknown;
  err: (text: string) => unknown;
}

const EPILOGUE = `
The key is read from LEASEHOLD_KEY or from a context, never from a flag.
Exit codes: 0 done, 1 failed or not green, 2 wrong usage, 3 conflict, 4 not found, 5 not allowed,
6 unavailable, 10 drift found, 130 interrupted. docs/reference/command-line.md has more.`;

/** The tree of all commands. The completion scripts are generated from it too. */
export function buildProgram(run: Run, { out, err }: Sinks): Command {
  const program = new LenientCommand("leasehold")
    .description(
      "Shows and changes what a Leasehold deployment knows: names, leases, cells, keys, identities, types.",
    )
    .version(VERSION, "--version", "print the version")
    .helpOption("-h, --help", "show the help of a command")
    .helpCommand(false)
    .addOption(new Option("--url <url>", "the deployment; LEASEHOLD_URL by default"))
    .addOption(new Option("--context <name>", "a deployment that was saved with `leasehold login`"))
    .option("--json", "print one JSON document, with `next_steps`")
    .option("--jsonl", "print one JSON document per line")
    .configureHelp({
      showGlobalOptions: true,
      sortSubcommands: false,
      optionDescription: (option) =>
        `${new Help().optionDescription(option)}${option.mandatory ? " (required)" : ""}`,
    })
    .configureOutput({ writeOut: out, writeErr: err })
    .showHelpAfterError("(--help shows the usage)")
    .addHelpText("after", EPILOGUE)
    .exitOverride();
  addStatus(program, run);
  addDoctor(program, run);
  addLookup(program, run);
  addLeases(program, run);
  addClaims(program, run);
  addTransfers(program, run);
  addCells(program, run);
  addVerify(program, run);
  addKeys(program, run);
  addShards(program, run);
  addOperations(program, run);
  addUpgrade(program, run);
  addParts(program, run);
  addScrub(program, run);
  addWebhooks(program, run);
  addTypes(program, run);
  addIdentities(program, run);
  addAudit(program, run);
  addBackup(program, run);
  addRoute(program, run);
  addApi(program, run);
  addWatch(program, run);
  addDev(program, run);
  addGrpc(program, run);
  addBench(program, run);
  addConformance(program, run);
  addLogin(program, run);
  addContexts(program, run);
  addCompletion(program, run);
  return program;
}
