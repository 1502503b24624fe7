#!/usr/bin/env node
/** `npx leasehold` in this repository: runs the program from a bundle, on Node 20 too. */
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { cliBundle } from "./cli-bundle.mjs";
import { isCurrent, makeBundle } from "../src/hosts/workerd/fresh-bundle.mjs";

const folder = "dist/cli";
if (!isCurrent(folder)) await makeBundle(folder, cliBundle);
await import(pathToFileURL(join(resolve(import.meta.dirname, ".."), folder, "cli.mjs")).href);
