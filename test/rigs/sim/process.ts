import { spawn } from "node:child_process";

const main = new URL("./main.ts", import.meta.url).pathname;

/** The simulator as `npm run sim` starts it: a process of its own, without the test runner in it. */
export function sim(...options: string[]): Promise<{ code: number | null; lines: string[] }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...options], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (data: Buffer) => (out += data.toString()));
    child.once("close", (code) => resolve({ code, lines: out.trim().split("\n") }));
  });
}
