/** Returns what is wrong and what to do, in one line. Undefined: nothing is wrong. */
export type Check = () => string | undefined | Promise<string | undefined>;

/** Runs all checks, and prints a line for each. Returns whether all of them passed. */
export async function runItems(
  checks: Readonly<Record<string, Check>>,
  print: (line: string) => void,
): Promise<boolean> {
  let isRight = true;
  for (const [name, check] of Object.entries(checks)) {
    const fault = await faultOf(check);
    print(fault === undefined ? `ok: ${name}` : `FAILED: ${name}: ${fault}`);
    isRight &&= fault === undefined;
  }
  return isRight;
}

async function faultOf(check: Check): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
