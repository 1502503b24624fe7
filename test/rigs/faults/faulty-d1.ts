/** A D1 whose statements go through a TestDeployment, named after what they do. */
import { wrappedD1 } from "../../support/workerd/wrapped-d1.ts";
import { nameOf } from "./d1-names.ts";
import type { TestDeployment } from "./test-deployment.ts";

/**
 * Which credentials are used is recorded in the background, at no fixed place among the writes. No call waits
 * for it and nothing is decided by it. test/coordinator/capabilities/keys/workerd/credential-uses.test.ts
 * lets it fail.
 */
const RECORD_OF_USE = /^\s*INSERT INTO credential_uses\b/;

/** The error texts that D1's documentation lists. D1 reports nothing else about a failure. */
export const d1Errors = [
  "D1 DB reset because its code was updated.",
  "Internal error while starting up D1 DB storage caused object to be reset.",
  "Network connection lost.",
  "Internal error in D1 DB storage caused object to be reset.",
  "Cannot resolve D1 DB due to transient issue on remote node.",
  "Can't read from request stream because client disconnected.",
  "D1 DB storage operation exceeded timeout which caused object to be reset.",
  "D1 DB is overloaded. Requests queued for too long.",
  "D1 DB is overloaded. Too many requests queued.",
  "D1 DB exceeded its CPU time limit and was reset.",
  "D1 DB's isolate exceeded its memory limit and was reset.",
  "Exceeded maximum DB size.",
  "Your account has exceeded D1's maximum account storage limit, " +
    "please contact Cloudflare to raise your limit",
] as const;

export function faultyD1(
  real: D1Database,
  deployment: TestDeployment,
  from: string,
  isAlive: () => void,
): D1Database {
  return wrappedD1(real, async (sql, deliver) => {
    isAlive();
    if (sql.every((text) => RECORD_OF_USE.test(text))) return deliver();
    return deployment.send({ from, to: "d1", method: sql.map(nameOf).join(" + "), deliver });
  });
}
