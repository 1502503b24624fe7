import { env } from "./api.ts";
import { restartObjects } from "./restart.ts";
import { saveObject } from "./save-object.ts";
import { stubsOf } from "./stubs.ts";

/** Copies the rows of the directory. The result brings them back, and restarts it and these cells. */
export async function saveDirectory(...cells: string[]): Promise<() => Promise<void>> {
  const restore = await saveObject(stubsOf(env).directory());
  return async () => {
    await restore();
    await restartObjects(env, ...cells);
  };
}
