import { spawn } from "node:child_process";

const main = new URL("./main.ts", import.meta.url).pathname;

/** Runs the simulator as `npm run sim` does, in a process without the test runner. */
export function sim(...options: string[]): Promise<{ code: number | null; lines: string[] }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...options], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (data: Buffer) => (out += data.toString()));
    child.once("close", (code) => resolve({ code, lines: out.trim().split("\n") }));
  });
}
