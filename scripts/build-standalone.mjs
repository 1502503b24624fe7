/** `npm run build:standalone`: bundles the standalone server into `dist/standalone`, if it is not there yet. */
import { buildStandalone, isCurrent } from "./standalone-bundle.mjs";

if (!isCurrent()) await buildStandalone();
