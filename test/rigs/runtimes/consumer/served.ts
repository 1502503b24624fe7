import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface ServedCoordinator {
  url: string;
  keys: Readonly<Record<string, string>>;
  stop: () => Promise<void>;
}

/** Starts a coordinator with these cells in a process of its own, on the Node of the repository. */
export async function startServed(cells: readonly string[]): Promise<ServedCoordinator> {
  const node = process.env["COORDINATOR_NODE"] ?? "node";
  const child = spawn(node, ["--no-warnings", "coordinator.mjs", ...cells], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  const stop = async (): Promise<void> => {
    child.kill();
    await gone;
  };
  for await (const line of createInterface({ input: child.stdout }))
    return { ...(JSON.parse(line) as Pick<ServedCoordinator, "url" | "keys">), stop };
  throw new Error("the coordinator did not start");
}
