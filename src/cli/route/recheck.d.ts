/** The analysis of regular expressions in JavaScript alone. The package has types only for its main entry. */
declare module "recheck/lib/browser.js" {
  import type { checkSync } from "recheck";
  const recheck: { checkSync: typeof checkSync };
  export default recheck;
}
