/** `npm run standalone`: runs the server from a bundle, which is made again if a source changed. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { buildStandalone, isCurrent, program } from "./standalone-bundle.mjs";

if (!isCurrent()) await buildStandalone();
enableCompileCache?.(join(program, "../compile-cache"));
await import(pathToFileURL(program).href);
