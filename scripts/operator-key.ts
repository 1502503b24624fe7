/**
 * `npm run operator-key`: makes an operator key from the deployment's signing secret, without a request to
 * the deployment. Use it for the first key, or if all operator keys are lost. Make all other keys with POST
 * /v1/admin/keys.
 */
import { v7 as newUuid } from "uuid";
import { Hmac, secretsOf } from "../src/coordinator/auth/secrets.ts";
import { makeKey } from "../src/coordinator/auth/key.ts";
import { limitTable } from "../src/common/limits.ts";
import { escapeControls } from "../src/common/text/escape.ts";

const DEFAULT_DAYS = 90;
const MAX_DAYS = limitTable.keyLifetimeS.max / 86_400;

function daysOf(given: string | undefined): number {
  const days = Number(given ?? DEFAULT_DAYS);
  if (!Number.isSafeInteger(days) || days < 1 || days > MAX_DAYS)
    throw new Error(`the argument must be the key's lifetime in days, a whole number from 1 to ${MAX_DAYS}`);
  return days;
}

async function main(): Promise<void> {
  const secrets = secretsOf(process.env);
  if (!secrets.ok) throw new Error(`${secrets.refusal.detail}. Set it to the deployment's secret`);
  const days = daysOf(process.argv[2]);
  const iat = Math.floor(Date.now() / 1_000);
  const id = newUuid();
  const key = await makeKey(
    { v: 1, id, role: "operator", iat, exp: iat + days * 86_400 },
    new Hmac(secrets.value.current),
  );
  process.stderr.write(
    `This operator key is valid for ${days} days and is not stored. To revoke it, use its id: ${id}\n`,
  );
  process.stdout.write(`${key}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(
    `operator-key: ${escapeControls(String(error instanceof Error ? error.message : error))}.\n`,
  );
  process.exitCode = 1;
});
