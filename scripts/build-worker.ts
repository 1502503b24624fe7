/** `npm run build:worker`: bundles the Worker into `dist/worker`. wrangler runs it before each deployment. */
import { join } from "node:path";
import { buildWorker } from "./bundle.ts";

await buildWorker(join(import.meta.dirname, "../dist/worker"));
