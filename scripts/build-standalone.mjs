/** `npm run build:standalone`: bundles the standalone server into `dist/standalone`. */
import { buildStandalone } from "./standalone-bundle.mjs";

await buildStandalone();
