/** `npm run build:standalone`: bundles the standalone server into `dist/standalone`, if it is out of date. */
import { buildStandalone, isCurrent } from "./standalone-bundle.mjs";

if (!isCurrent()) await buildStandalone();
